package fleet

import (
	"encoding/json"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/assert"
)

// Whatever a document holds, it decodes to a spec and faults, without a panic; what has no fault
// survives being stored.
func FuzzDecodeAndValidate(f *testing.F) {
	for _, s := range []Spec{{}, whole(), managed().Spec, external().Spec} {
		data, _ := json.Marshal(s)
		f.Add("us-east1-a", "pool", "news", data)
	}
	f.Add("", "a:b", "\xff", []byte(`{"mode":1,"endpoint":{"port":1e999,"host":"[::1]"},"lifecycle":{"maxAge":"-1h"},"placement":{"zones":[null,{}],"zone":"-"}}`))
	f.Fuzz(func(t *testing.T, name, key, value string, spec []byte) {
		var raw map[string]any
		if json.Unmarshal(spec, &raw) != nil {
			return
		}
		p := Proxy{Name: name, Labels: map[string]string{key: value}}
		p.Spec, p.Broken = Decode(raw)
		faults := append(Validate(p), ValidateUpdate(managed(), p)...)
		assert.True(t, utf8.ValidString(faults.Error()), "faults go into documents and logs")
		for _, fault := range faults {
			assert.NotEmpty(t, fault.Path)
			assert.Less(t, len(fault.Error()), 1024)
		}
		if len(faults) == 0 {
			again, none := Decode(Encode(p.Spec))
			assert.Empty(t, none)
			assert.Equal(t, Encode(p.Spec), Encode(again))
		}
		_, _, _ = SpecHash(p.Spec), p.EffectiveHost(), p.Spec.ZonesInOrder()
		_ = Explain(p, p.CreateTime)
	})
}
