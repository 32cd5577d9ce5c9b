package fleet

import (
	"encoding/json"
	"math"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// whole is a spec with every field set.
func whole() Spec {
	n, d, zero := int32(3), Duration(90*time.Minute), Duration(0)
	return Spec{
		Mode: Managed, Provider: "gce-main",
		Placement: &Placement{Region: "us-east1", Zone: "us-east1-b", Zones: []string{"us-east1-b", "us-east1-c"}, MachineType: "e2-micro", Spot: true},
		CloudInit: &CloudInit{Inline: "#cloud-config\n", SecretRef: &SecretRef{Name: "proxy-cloud-init", Key: "user-data"}},
		Endpoint:  Endpoint{Host: "2001:db8::1", Port: 3128, CredentialsSecretRef: &SecretRef{Name: "proxy-auth", Key: "basic"}},
		HealthCheck: &HealthCheck{
			URL: "https://www.example.com/", ExpectedStatus: 200, BodyContains: "hello", IntervalSeconds: 120, TimeoutSeconds: 5, HealthyThreshold: 2,
			UnhealthyThreshold: 4, InsecureSkipVerify: true, OnBlocked: OnBlockedIgnore, ExitAddressFrom: "header", ExitAddressHeader: "X-Me",
		},
		MaxLeases: &n, Paused: true,
		Lifecycle: &Lifecycle{ProvisionTimeout: &d, ReplaceUnhealthyAfter: &zero, MaxAge: &d, DrainTimeout: &zero},
	}
}

func TestASpecSurvivesEncodeAndDecode(t *testing.T) {
	t.Parallel()
	for name, s := range map[string]Spec{
		"empty": {}, "whole": whole(), "managed": managed().Spec, "external": external().Spec,
		"empty objects stay": {Mode: Managed, Placement: &Placement{}, CloudInit: &CloudInit{}, HealthCheck: &HealthCheck{}, Lifecycle: &Lifecycle{}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, faults := Decode(Encode(s))
			assert.Empty(t, faults)
			assert.Equal(t, s, got)
		})
	}
	assertAllSet(t, "spec", reflect.ValueOf(whole()))
}

// assertAllSet makes sure that a field that is added is added to whole, too.
func assertAllSet(t *testing.T, path string, v reflect.Value) {
	t.Helper()
	if v.Kind() == reflect.Pointer {
		require.False(t, v.IsNil(), path)
		v = v.Elem()
	}
	if v.Kind() != reflect.Struct {
		return
	}
	for i := range v.NumField() {
		field := path + "." + v.Type().Field(i).Name
		assert.False(t, v.Field(i).IsZero(), field)
		assertAllSet(t, field, v.Field(i))
	}
}

func TestTheEncodedFormIsThatOfJSONAndOfStores(t *testing.T) {
	t.Parallel()
	encoded := Encode(whole())
	data, err := json.Marshal(whole())
	require.NoError(t, err)
	viaMap, err := json.Marshal(encoded)
	require.NoError(t, err)
	assert.JSONEq(t, string(data), string(viaMap))
	assert.Equal(t, map[string]any{
		"mode": "External", "endpoint": map[string]any{"host": "h", "port": int64(1)}, "maxLeases": int64(0),
		"lifecycle": map[string]any{"maxAge": "0s"}, "placement": map[string]any{"zones": []any{"a"}},
	}, Encode(Spec{
		Mode: External, Endpoint: Endpoint{Host: "h", Port: 1}, MaxLeases: new(int32),
		Lifecycle: &Lifecycle{MaxAge: new(Duration)}, Placement: &Placement{Zones: []string{"a"}},
	}), "left out is left out, int64 for every store, an explicit 0 stays")
}

func TestFaultsOfDecoding(t *testing.T) {
	t.Parallel()
	endpoint := func(k string, v any) map[string]any { return map[string]any{"endpoint": map[string]any{k: v}} }
	for name, row := range map[string]struct {
		raw  map[string]any
		want string
	}{
		"unknown key, a slip away":              {map[string]any{"maxLease": 1}, "spec.maxLease: unknown key; did you mean maxLeases?"},
		"unknown key, other case":               {map[string]any{"maxleases": 1}, "spec.maxleases: unknown key; did you mean maxLeases?"},
		"unknown key, shouted":                  {map[string]any{"MAXLEASES": 1}, "spec.MAXLEASES: unknown key; did you mean maxLeases?"},
		"unknown key, three slips away":         {map[string]any{"model12": 1}, "spec.model12: unknown key"},
		"unknown key, endless and near nothing": {map[string]any{strings.Repeat("-", 65): 1}, "spec." + strings.Repeat("-", 65) + ": unknown key"},
		"unknown key, nothing near":             {map[string]any{"replicas": 1}, "spec.replicas: unknown key"},
		"unknown key, deep":                     {endpoint("prot", 1), "spec.endpoint.prot: unknown key; did you mean port?"},
		"unknown key, of two near ones":         {map[string]any{"placement": map[string]any{"zon": "a"}}, "spec.placement.zon: unknown key; did you mean zone?"},
		"unknown key, too short to tell":        {endpoint("x", 1), "spec.endpoint.x: unknown key"},
		"unknown key, empty":                    {map[string]any{"": 1}, `spec."": unknown key`},
		"unknown key, not text":                 {map[string]any{"a\xffb": 1}, `spec."a\xffb": unknown key`},
		"unknown key, of many lines":            {map[string]any{"a\nb": 1}, `spec."a\nb": unknown key`},
		"unknown key, endless":                  {map[string]any{strings.Repeat("k", 1000): 1}, `spec."` + strings.Repeat("k", 40) + `": unknown key`},
		"word for a number":                     {endpoint("port", "80a"), `spec.endpoint.port: "80a": must be a whole number`},
		"quoted number":                         {endpoint("port", "80"), `spec.endpoint.port: "80": must be a whole number`},
		"truth for a number":                    {endpoint("port", true), "spec.endpoint.port: true: must be a whole number"},
		"object for a number":                   {endpoint("port", map[string]any{}), "spec.endpoint.port: must be a whole number"},
		"fraction":                              {endpoint("port", 80.5), "spec.endpoint.port: 80.5: must be a whole number"},
		"fraction in JSON":                      {endpoint("port", json.Number("80.5")), "spec.endpoint.port: 80.5: must be a whole number"},
		"no number in JSON":                     {endpoint("port", json.Number("x")), "spec.endpoint.port: x: must be a whole number"},
		"not a number":                          {endpoint("port", math.NaN()), "spec.endpoint.port: NaN: must be a whole number"},
		"infinite":                              {endpoint("port", math.Inf(1)), "spec.endpoint.port: +Inf: must be a whole number"},
		"larger than int32":                     {endpoint("port", int64(math.MaxInt32)+1), "spec.endpoint.port: 2147483648: must be between 1 and 65535"},
		"smaller than int32":                    {endpoint("port", int64(math.MinInt32)-1), "spec.endpoint.port: -2147483649: must be between 1 and 65535"},
		"wraps around to a good port":           {endpoint("port", int64(1)<<32+80), "spec.endpoint.port: 4294967376: must be between 1 and 65535"},
		"larger than int64":                     {endpoint("port", uint64(math.MaxUint64)), "spec.endpoint.port: 18446744073709551615: must be between 1 and 65535"},
		"larger than int64, as float":           {endpoint("port", 1e300), "spec.endpoint.port: 1e+300: must be between 1 and 65535"},
		"larger than float64":                   {endpoint("port", json.Number("-1e999")), "spec.endpoint.port: -1e999: must be between 1 and 65535"},
		"explicit zero":                         {endpoint("port", 0), "spec.endpoint.port: 0: must be between 1 and 65535"},
		"explicit zero, as float":               {endpoint("port", 0.0), "spec.endpoint.port: 0: must be between 1 and 65535"},
		"number for a string":                   {map[string]any{"provider": 7}, "spec.provider: 7: must be a string"},
		"truth for a string":                    {map[string]any{"mode": true}, "spec.mode: true: must be a string"},
		"bytes for a string":                    {map[string]any{"mode": []byte("Managed")}, "spec.mode: must be a string"},
		"time for a string":                     {map[string]any{"mode": time.Unix(0, 0)}, "spec.mode: must be a string"},
		"string that is not UTF-8":              {map[string]any{"provider": "a\xff"}, "spec.provider: must be UTF-8"},
		"word for a truth":                      {map[string]any{"paused": "true"}, `spec.paused: "true": must be true or false`},
		"word for an object":                    {map[string]any{"placement": "us"}, `spec.placement: "us": must be an object`},
		"list for an object":                    {map[string]any{"lifecycle": []any{}}, "spec.lifecycle: must be an object"},
		"word for a list":                       {map[string]any{"placement": map[string]any{"zones": "us-east1-b"}}, `spec.placement.zones: "us-east1-b": must be a list`},
		"number in a list":                      {map[string]any{"placement": map[string]any{"zones": []any{"a", 7}}}, "spec.placement.zones[1]: 7: must be a string"},
		"duration without unit":                 {map[string]any{"lifecycle": map[string]any{"maxAge": 600}}, "spec.lifecycle.maxAge: 600: must be a duration such as 10m, or 0"},
		"duration of words":                     {map[string]any{"lifecycle": map[string]any{"maxAge": "soon"}}, `spec.lifecycle.maxAge: "soon": must be a duration such as 10m, or 0`},
		"duration in days":                      {map[string]any{"lifecycle": map[string]any{"maxAge": "7d"}}, `spec.lifecycle.maxAge: "7d": must be a duration such as 10m, or 0`},
		"duration beyond all bounds":            {map[string]any{"lifecycle": map[string]any{"maxAge": "9999999h"}}, `spec.lifecycle.maxAge: "9999999h": must be a duration such as 10m, or 0`},
		"word for maxLeases":                    {map[string]any{"maxLeases": "many"}, `spec.maxLeases: "many": must be a whole number`},
		"maxLeases beyond int32":                {map[string]any{"maxLeases": int64(1) << 32}, "spec.maxLeases: 4294967296: must be between 0 and 1000"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, faults := Decode(row.raw)
			assert.EqualError(t, faults, row.want)
			assert.Empty(t, faults[0].Rule)
			assert.Zero(t, s.Endpoint, "what is at fault stays zero")
			assert.Nil(t, s.MaxLeases, "what is at fault stays nil")
		})
	}
}

func TestOfTwoKeysAsNearTheFirstIsSuggested(t *testing.T) {
	t.Parallel()
	for range 50 { // maps are walked in any order
		_, faults := Decode(map[string]any{"healthCheck": map[string]any{"nhealthyThreshold": 1}})
		assert.EqualError(t, faults, "spec.healthCheck.nhealthyThreshold: unknown key; did you mean healthyThreshold?")
	}
}

func TestNumbersOfEveryDecoderAreTaken(t *testing.T) {
	t.Parallel()
	for _, n := range []any{8080, int32(8080), int64(8080), uint64(8080), 8080.0, json.Number("8080"), json.Number("8.08e3")} {
		s, faults := Decode(map[string]any{"endpoint": map[string]any{"port": n}})
		assert.Empty(t, faults, "%T", n)
		assert.EqualValues(t, 8080, s.Endpoint.Port, "%T", n)
	}
}

func TestDurationsAreWordsOrZero(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		raw  any
		want time.Duration
	}{{"10m", 10 * time.Minute}, {"1h30m", 90 * time.Minute}, {"0", 0}, {"0s", 0}, {0, 0}, {int64(0), 0}, {0.0, 0}, {json.Number("0"), 0}, {"-5m", -5 * time.Minute}} {
		s, faults := Decode(map[string]any{"lifecycle": map[string]any{"drainTimeout": row.raw}})
		assert.Empty(t, faults, "%v", row.raw)
		assert.Equal(t, row.want, time.Duration(*s.Lifecycle.DrainTimeout), "%v", row.raw)
	}
}

func TestAKeyWithoutValueIsLeftOut(t *testing.T) {
	t.Parallel()
	raw := map[string]any{}
	for k := range Encode(whole()) {
		raw[k] = nil
	}
	s, faults := Decode(raw)
	assert.Empty(t, faults)
	assert.Equal(t, Spec{}, s)
}

func TestAllFaultsOfDecodingAreReportedAndTheRestIsFilledIn(t *testing.T) {
	t.Parallel()
	s, faults := Decode(map[string]any{
		"mode": "Managed", "provider": 7, "maxLeases": 2, "extra": 1,
		"healthCheck": map[string]any{"url": "https://www.example.com/", "timeoutSeconds": "x", "more": 1},
	})
	assert.Equal(t, []string{"spec.extra", "spec.healthCheck.more", "spec.healthCheck.timeoutSeconds", "spec.provider"}, paths(faults))
	assert.Equal(t, Managed, s.Mode)
	assert.EqualValues(t, 2, *s.MaxLeases)
	assert.Equal(t, "https://www.example.com/", s.HealthCheck.URL)
}

func TestLabelsAreText(t *testing.T) {
	t.Parallel()
	labels, faults := DecodeLabels(map[string]any{"a": "b", "n": 7, "t": true, "o": map[string]any{}, "u": "\xff", "x:y": 1})
	assert.Equal(t, map[string]string{"a": "b"}, labels)
	assert.EqualError(t, faults, strings.Join([]string{
		"metadata.labels.n: 7: must be a string: put it into quotes",
		"metadata.labels.o: must be a string: put it into quotes",
		"metadata.labels.t: true: must be a string: put it into quotes",
		"metadata.labels.u: must be UTF-8",
		"metadata.labels.(key): 1: must be a string: put it into quotes",
	}, "\n"))
	labels, faults = DecodeLabels(nil)
	assert.Empty(t, faults)
	assert.NotNil(t, labels)
	_, faults = DecodeLabels([]any{"a"})
	assert.EqualError(t, faults, "metadata.labels: must be an object")
}

func TestValuesAreShownShortAndWithoutSecrets(t *testing.T) {
	t.Parallel()
	assert.Equal(t, `"a \"b\""`, ShowValue(`a "b"`))
	assert.Equal(t, "1.5", ShowValue(1.5))
	for _, hidden := range []any{strings.Repeat("a", 79), "user:password", "user@host", []any{"a"}, map[string]any{}, []byte("a"), nil, struct{}{}} {
		assert.Empty(t, ShowValue(hidden), "%v", hidden)
	}
}
