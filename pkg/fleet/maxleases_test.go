package fleet

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Left out means 5, and 0 means never: whoever mixes them up leases what nobody may have.
func TestMaxLeasesSurvivesLeftOutZeroAndFive(t *testing.T) {
	t.Parallel()
	zero, five := int32(0), int32(5)
	for name, row := range map[string]struct {
		value     *int32
		json      string
		effective int32
	}{
		"left out": {nil, `{"mode":"External"}`, 5},
		"zero":     {&zero, `{"mode":"External","maxLeases":0}`, 0},
		"five":     {&five, `{"mode":"External","maxLeases":5}`, 5},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := Spec{Mode: External, MaxLeases: row.value}
			assert.Equal(t, row.effective, s.MaxLeasesOrDefault())

			data, err := json.Marshal(s)
			require.NoError(t, err)
			assert.JSONEq(t, row.json, string(data), "written as JSON")
			var viaJSON Spec
			require.NoError(t, json.Unmarshal(data, &viaJSON))
			assert.Equal(t, row.value, viaJSON.MaxLeases, "read as JSON")

			stored := Encode(s)
			if row.value == nil {
				assert.NotContains(t, stored, "maxLeases")
			} else {
				assert.Equal(t, int64(*row.value), stored["maxLeases"], "in the form that Firestore keeps")
			}
			viaStore, faults := Decode(stored)
			assert.Empty(t, faults)
			assert.Equal(t, row.value, viaStore.MaxLeases, "read from the stored form")

			var raw map[string]any
			require.NoError(t, json.Unmarshal(data, &raw))
			viaFloat, faults := Decode(raw)
			assert.Empty(t, faults)
			assert.Equal(t, row.value, viaFloat.MaxLeases, "read from JSON's own numbers")

			document, err := json.Marshal(DocumentOf(Proxy{Name: "a", Spec: s}))
			require.NoError(t, err)
			var back Document
			require.NoError(t, json.Unmarshal(document, &back))
			assert.Equal(t, row.value, back.Spec.MaxLeases, "within a whole document")
		})
	}
}
