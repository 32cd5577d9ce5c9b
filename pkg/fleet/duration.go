package fleet

import (
	"encoding/json"
	"errors"
	"strings"
	"time"
)

// Duration is a time.Duration that manifests write as "10m" (or as 0).
type Duration time.Duration

var errDuration = errors.New("must be a duration such as 10m, or 0")

// String writes the duration without parts that are zero: "10m", "1h30m", "0s".
func (d Duration) String() string {
	s := time.Duration(d).String()
	if strings.HasSuffix(s, "m0s") {
		s = strings.TrimSuffix(s, "0s")
	}
	if strings.HasSuffix(s, "h0m") {
		s = strings.TrimSuffix(s, "0m")
	}
	return s
}

// MarshalJSON writes the form of String.
func (d Duration) MarshalJSON() ([]byte, error) { return json.Marshal(d.String()) }

// UnmarshalJSON reads the form of time.ParseDuration, and the number 0.
func (d *Duration) UnmarshalJSON(data []byte) error {
	var v any
	if err := json.Unmarshal(data, &v); err != nil {
		return err
	}
	parsed, err := parseDuration(v)
	if err != nil {
		return err
	}
	*d = parsed
	return nil
}

func parseDuration(v any) (Duration, error) {
	if n, ok := wholeNumber(v); ok && n == 0 {
		return 0, nil
	}
	s, ok := v.(string)
	if !ok {
		return 0, errDuration
	}
	d, err := time.ParseDuration(s)
	if err != nil {
		return 0, errDuration
	}
	return Duration(d), nil
}
