package fleet

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestADocumentHasTheManifestsFormAndTheStatus(t *testing.T) {
	t.Parallel()
	at := time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC)
	p := external()
	p.Labels = map[string]string{"pool": "news"}
	p.CreateTime, p.UpdateTime, p.RotateTime, p.DeleteTime = at, at.Add(time.Minute), at.Add(2*time.Minute), at.Add(time.Hour)
	p.Status = Status{UID: "u", Phase: PhaseRunning, Health: Health{Healthy: true, Outcome: OutcomeOK, LastProbeTime: at}}
	p.Status.Conditions.Set(Condition{Type: ConditionReady, Status: true, Reason: "Ready"}, at)
	data, err := json.Marshal(DocumentOf(p))
	require.NoError(t, err)
	assert.JSONEq(t, `{
		"apiVersion": "crawl.example.com/v1alpha1", "kind": "Proxy",
		"metadata": {"name": "partner-1", "labels": {"pool": "news"}, "createTime": "2030-01-02T03:04:05Z", "updateTime": "2030-01-02T03:05:05Z",
			"rotateTime": "2030-01-02T03:06:05Z", "deleteTime": "2030-01-02T04:04:05Z"},
		"spec": {"mode": "External", "endpoint": {"host": "proxy.example.net"}},
		"status": {"uid": "u", "phase": "Running", "health": {"healthy": true, "outcome": "ok", "lastProbeTime": "2030-01-02T03:04:05Z"},
			"conditions": [{"type": "Ready", "status": true, "reason": "Ready", "lastTransitionTime": "2030-01-02T03:04:05Z"}]}
	}`, string(data))
	var back Document
	require.NoError(t, json.Unmarshal(data, &back))
	assert.Equal(t, DocumentOf(p), back)
}

func TestADocumentWithoutStatusIsAManifest(t *testing.T) {
	t.Parallel()
	data, err := json.Marshal(DocumentOf(Proxy{Name: "a", Spec: whole()}))
	require.NoError(t, err)
	var raw map[string]any
	require.NoError(t, json.Unmarshal(data, &raw))
	assert.NotContains(t, raw, "status")
	assert.Equal(t, map[string]any{"name": "a"}, raw["metadata"])
	s, faults := Decode(raw["spec"].(map[string]any))
	assert.Empty(t, faults)
	assert.Equal(t, whole(), s)
}
