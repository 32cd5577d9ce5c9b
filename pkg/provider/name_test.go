package provider

import (
	"fmt"
	"regexp"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestInstanceNamesDoNotCollideAndAreValid(t *testing.T) {
	t.Parallel()
	rfc1035 := regexp.MustCompile(`^[a-z]([-a-z0-9]{0,61}[a-z0-9])?$`)
	seen := map[string]string{}
	for i := range 10_000 {
		uid := fmt.Sprintf("uid-%d", i)
		for _, incarnation := range []int64{1, 2} {
			name, of := InstanceName(uid, incarnation), fmt.Sprintf("%s/%d", uid, incarnation)
			require.Regexp(t, rfc1035, name)
			require.Len(t, name, 22)
			require.Empty(t, seen[name], "%s and %s have one name", seen[name], of)
			seen[name] = of
		}
	}
}

func TestInstanceNameIsTheSameForEver(t *testing.T) {
	t.Parallel()
	// A change of these names would make the plane lose every VM that it has.
	assert.Equal(t, "proxy-awu4k2nbqwwgb5kr", InstanceName("a", 1))
	assert.Equal(t, "proxy-pjti4bu47bbvkse5", InstanceName("a", 9_223_372_036_854_775_807))
}

func TestInstanceNameKeepsUIDAndIncarnationApart(t *testing.T) {
	t.Parallel()
	assert.NotEqual(t, InstanceName("a1", 1), InstanceName("a", 11))
	assert.NotEqual(t, InstanceName("", 1), InstanceName("", -1))
}
