package fleet

import (
	"encoding/json"
	"math"
)

// hugeNumber stands for all numbers that no field can hold; it fits a float64 exactly.
const hugeNumber = 1 << 53

// wholeNumber takes the number types of JSON, YAML and Firestore. What is too large to tell becomes
// plus or minus hugeNumber.
func wholeNumber(raw any) (n int64, whole bool) {
	switch v := raw.(type) {
	case int:
		return int64(v), true
	case int32:
		return int64(v), true
	case int64:
		return v, true
	case uint64:
		return int64(min(v, hugeNumber)), true
	case float64:
		if v != math.Trunc(v) { // so is NaN
			return 0, false
		}
		return int64(max(min(v, hugeNumber), -hugeNumber)), !math.IsInf(v, 0)
	case json.Number:
		return wholeText(v)
	}
	return 0, false
}

func wholeText(v json.Number) (n int64, whole bool) {
	if n, err := v.Int64(); err == nil {
		return n, true
	}
	f, err := v.Float64()
	if math.IsInf(f, 0) { // "1e999": a number, and too large
		return wholeNumber(math.Copysign(hugeNumber, f))
	}
	if err != nil {
		return 0, false
	}
	return wholeNumber(f)
}
