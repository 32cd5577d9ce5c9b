package main

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/require"

	"crawl.example.com/proxyfleet/pkg/client"
)

func TestARefusalIsSaidWithItsCounts(t *testing.T) {
	t.Parallel()
	for want, err := range map[string]error{
		"NONE_HEALTHY: none of 3 is Ready: 1 Paused, 2 Unhealthy": &client.Refusal{
			Code: 503, Reason: "NONE_HEALTHY", Message: "none of 3 is Ready", Metadata: map[string]string{"Unhealthy": "2", "Paused": "1"},
		},
		"INVALID_ARGUMENT: target: must be a host name": &client.Refusal{
			Code: 400, Reason: "INVALID_ARGUMENT", Message: "target: must be a host name", Metadata: map[string]string{"field": "target"},
		},
		"it answers 403 Forbidden: you may not call it; see proxyctl lease --help": &client.Refusal{Code: 403, Message: "it answers 403 Forbidden"},
		"no route\ufffd to host": errors.New("no route\x1b to host"),
	} {
		require.Equal(t, want, why(err))
	}
}

func TestWhoCallsIsSaidByKeyOrByServiceAccount(t *testing.T) {
	t.Setenv(envAPIKey, "")
	require.Nil(t, tokenFor("http://127.0.0.1:8080"), "on this machine nobody asks")
	t.Setenv("GOOGLE_APPLICATION_CREDENTIALS", "/nowhere.json")
	_, err := tokenFor("https://lease.example.com")(t.Context())
	require.ErrorContains(t, err, "export PROXYFLEET_API_KEY=$(gcloud auth print-identity-token)")
	t.Setenv(envAPIKey, "k3y")
	for _, url := range []string{"https://lease.example.com", "http://127.0.0.1:8080"} {
		token, err := tokenFor(url)(t.Context())
		require.NoError(t, err)
		require.Equal(t, "k3y", token)
	}
}

func TestDoctorSaysWhatTheLeaseFunctionAnswers(t *testing.T) {
	t.Setenv(envAPIKey, "planted-key")
	for name, row := range map[string]struct {
		answer http.HandlerFunc
		want   string
	}{
		"not allowed":    {func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusForbidden) }, "answers 403 Forbidden"},
		"something else": {func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("<html>")) }, "its answer cannot be read"},
		"the key is passed": {func(w http.ResponseWriter, r *http.Request) {
			_, _ = w.Write([]byte(`{"version":"` + r.Header.Get("Authorization")[:11] + `"}`))
		}, "version Bearer plan answers"},
	} {
		t.Run(name, func(t *testing.T) {
			s := httptest.NewServer(row.answer)
			t.Cleanup(s.Close)
			r := newRig(t)
			r.plane()
			got := r.run("", "doctor", "--url", s.URL)
			require.Contains(t, got.out, row.want)
			require.NotContains(t, got.out+got.errs, "planted-key")
		})
	}
}
