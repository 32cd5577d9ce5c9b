package secret

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// source is a resolver that can be changed and counts its calls.
type source struct {
	calls atomic.Int64
	mu    sync.Mutex
	value string
	err   error
	takes time.Duration
}

func (s *source) set(value string, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.value, s.err = value, err
}

func (s *source) Resolve(ctx context.Context, name, key string) (string, error) {
	s.calls.Add(1)
	s.mu.Lock()
	value, err := s.value, s.err
	s.mu.Unlock()
	select {
	case <-time.After(s.takes):
	case <-ctx.Done():
		return "", ctx.Err()
	}
	return value + "/" + name + "/" + key, err
}

func TestARotatedSecretIsSeenWithinItsAge(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &source{value: "old"}
		c := NewCache(s, time.Now)
		get := func() string {
			got, err := c.Resolve(t.Context(), "name", "key")
			require.NoError(t, err)
			return got
		}
		assert.Equal(t, "old/name/key", get())
		s.set("new", nil)
		time.Sleep(MaxAge - time.Second)
		assert.Equal(t, "old/name/key", get())
		assert.EqualValues(t, 1, s.calls.Load())
		time.Sleep(time.Second)
		assert.Equal(t, "new/name/key", get())
		assert.EqualValues(t, 2, s.calls.Load())
	})
}

func TestTheAgeCountsFromBeforeTheLookUp(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &source{value: "old", takes: 20 * time.Second}
		c := NewCache(s, time.Now)
		_, err := c.Resolve(t.Context(), "name", "")
		require.NoError(t, err)
		s.set("new", nil)
		time.Sleep(MaxAge - 20*time.Second)
		got, err := c.Resolve(t.Context(), "name", "")
		require.NoError(t, err)
		assert.Equal(t, "new/name/", got)
	})
}

func TestNamesAndKeysAreKeptApart(t *testing.T) {
	t.Parallel()
	c := NewCache(&source{value: "v"}, time.Now)
	for _, r := range []ref{{"a", "b"}, {"a", ""}, {"ab", ""}, {"a", "c"}, {"b", "b"}} {
		got, err := c.Resolve(t.Context(), r.name, r.key)
		require.NoError(t, err)
		assert.Equal(t, "v/"+r.name+"/"+r.key, got)
	}
}

func TestAFailureIsNotKeptLong(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &source{}
		s.set("", ErrNotFound)
		c := NewCache(s, time.Now)
		for range 100 {
			got, err := c.Resolve(t.Context(), "name", "")
			assert.ErrorIs(t, err, ErrNotFound)
			assert.Empty(t, got)
		}
		assert.EqualValues(t, 1, s.calls.Load(), "a run with a broken reference asks once")
		s.set("there", nil)
		time.Sleep(ErrorAge)
		got, err := c.Resolve(t.Context(), "name", "")
		require.NoError(t, err)
		assert.Equal(t, "there/name/", got)

		s.set("", errors.New("outage"))
		time.Sleep(MaxAge)
		_, err = c.Resolve(t.Context(), "name", "")
		assert.Error(t, err, "an old value is not used beyond its age")
	})
}

func TestCallersAtOnceShareOneLookUp(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &source{value: "v", takes: time.Second}
		c := NewCache(s, time.Now)
		var wg sync.WaitGroup
		for range 50 {
			wg.Go(func() {
				got, err := c.Resolve(t.Context(), "name", "")
				assert.NoError(t, err)
				assert.Equal(t, "v/name/", got)
			})
		}
		wg.Wait()
		assert.EqualValues(t, 1, s.calls.Load())
	})
}

func TestACallerThatLeavesDoesNotFailTheOthers(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &source{value: "v", takes: 2 * time.Second}
		c := NewCache(s, time.Now)
		first, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		var wg sync.WaitGroup
		wg.Go(func() {
			_, err := c.Resolve(first, "name", "")
			assert.ErrorIs(t, err, context.DeadlineExceeded)
		})
		synctest.Wait()
		wg.Go(func() {
			got, err := c.Resolve(t.Context(), "name", "")
			assert.NoError(t, err)
			assert.Equal(t, "v/name/", got)
		})
		wg.Wait()
		assert.EqualValues(t, 1, s.calls.Load())
	})
}

func TestALookUpThatNeverEndsIsEnded(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &source{value: "v", takes: time.Hour}
		c := NewCache(s, time.Now)
		_, err := c.Resolve(t.Context(), "name", "")
		require.ErrorContains(t, err, "no answer in 30s")
		assert.NotErrorIs(t, err, context.DeadlineExceeded, "it is nobody's deadline")
		s.mu.Lock()
		s.takes = 0
		s.mu.Unlock()
		got, err := c.Resolve(t.Context(), "name", "")
		require.NoError(t, err, "it is not remembered")
		assert.Equal(t, "v/name/", got)
	})
}

func TestOldValuesAreForgotten(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := NewCache(&source{value: "v"}, time.Now)
		for _, name := range []string{"a", "b", "c"} {
			_, err := c.Resolve(t.Context(), name, "")
			require.NoError(t, err)
		}
		time.Sleep(MaxAge)
		_, err := c.Resolve(t.Context(), "d", "")
		require.NoError(t, err)
		assert.Len(t, c.entries, 1)
	})
}

func TestAnEndedContextAsksForNothing(t *testing.T) {
	t.Parallel()
	s := &source{value: "v"}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := NewCache(s, time.Now).Resolve(ended, "name", "")
	assert.ErrorIs(t, err, context.Canceled)
	assert.Zero(t, s.calls.Load())
}
