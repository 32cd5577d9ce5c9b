package health

import (
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"time"
)

// Target is one instance that is to be probed.
type Target struct {
	Name        string `json:"name"`           // of the Proxy
	Incarnation int64  `json:"incarnation"`    // 0 for External
	Shard       int    `json:"shard"`          // of the catalog; negative while the Proxy is in none
	Next        bool   `json:"next,omitempty"` // it is to take over; for people, the incarnation decides
}

// Message is what reconcile publishes and the health function receives. Later versions may add
// fields; a reader ignores what it does not know.
type Message struct {
	Tick    time.Time `json:"tick"` // of the run; results are counted once per tick
	Proxies []Target  `json:"proxies"`
}

// Bounds of a message. A tick from the future would make all later results look stale.
const (
	maxTargets   = 1000
	maxTickAhead = 5 * time.Minute
)

var namePattern = regexp.MustCompile(`^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$`)

// DecodeMessage reads a message as it was published at or before now. Its errors never quote what it read.
func DecodeMessage(data []byte, now time.Time) (Message, error) {
	var m Message
	if err := json.Unmarshal(data, &m); err != nil {
		return Message{}, errors.New("not a probe message")
	}
	switch {
	case m.Tick.IsZero():
		return Message{}, errors.New("tick: must be set")
	case m.Tick.After(now.Add(maxTickAhead)):
		return Message{}, errors.New("tick: must not be in the future")
	case len(m.Proxies) == 0, len(m.Proxies) > maxTargets:
		return Message{}, fmt.Errorf("proxies: must be 1 to %d", maxTargets)
	}
	for i, t := range m.Proxies {
		if !namePattern.MatchString(t.Name) {
			return Message{}, fmt.Errorf("proxies[%d].name: must be a proxy's name", i)
		}
	}
	m.Tick = canonical(m.Tick)
	return m, nil
}

// canonical is the form in which times come back from the store: ticks are compared with stored ones.
func canonical(t time.Time) time.Time { return t.UTC().Truncate(time.Microsecond) }
