package lease

import (
	"sync"
	"time"
)

// fullness remembers which filters found no room a moment ago, so that a rush on a full fleet does not
// become a rush on the store. A slot that is freed here is known to be free, and tried all the same.
type fullness struct {
	mu    sync.Mutex
	since map[string]found
}

type found struct {
	at  time.Time
	why *Error
}

// fullFor is how long a fleet counts as full: as long as a slot that another instance frees may go
// unnoticed.
const fullFor = time.Second

func (f *fullness) set(key string, why *Error, now time.Time) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.since == nil || len(f.since) > maxFiltered {
		f.since = map[string]found{}
	}
	f.since[key] = found{now, why}
}

// get returns why there was no room, nil when that is too long ago.
func (f *fullness) get(key string, now time.Time) *Error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if at, ok := f.since[key]; ok && now.Sub(at.at) < fullFor {
		return at.why
	}
	return nil
}
