package fleet

import (
	"encoding/json"
	"fmt"
	"time"
)

// Duration is a time.Duration that manifests write as "10m" (or as 0).
type Duration time.Duration

// MarshalJSON writes the form of time.Duration.String.
func (d Duration) MarshalJSON() ([]byte, error) { return json.Marshal(time.Duration(d).String()) }

// UnmarshalJSON reads the form of time.ParseDuration, and the number 0.
func (d *Duration) UnmarshalJSON(data []byte) error {
	if string(data) == "0" {
		*d = 0
		return nil
	}
	var s string
	if err := json.Unmarshal(data, &s); err != nil {
		return fmt.Errorf("must be a duration such as 10m")
	}
	v, err := time.ParseDuration(s)
	if err != nil {
		return fmt.Errorf("must be a duration such as 10m")
	}
	*d = Duration(v)
	return nil
}
