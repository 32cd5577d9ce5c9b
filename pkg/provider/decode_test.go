package provider

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// settings has a field of every kind that a block may have.
type settings struct {
	Text    string            `yaml:"text"`
	Flag    bool              `yaml:"flag,omitempty"`
	Switch  *bool             `json:"switch"`
	Count   int               `yaml:"count"`
	Small   int32             `yaml:"small"`
	Delay   time.Duration     `yaml:"delay"`
	Pause   time.Duration     `yaml:"pause"`
	Words   []string          `yaml:"words"`
	Labels  map[string]string `yaml:"labels"`
	Nested  inner             `yaml:"nested"`
	Lists   []inner           `yaml:"lists"`
	Ratio   float64           `yaml:"ratio"`
	Skipped string            `yaml:"-"`
	hidden  string
}

type inner struct {
	Zone string `yaml:"zone"`
}

func entryWith(t *testing.T, block string) Config {
	t.Helper()
	configs, err := ReadConfigs([]byte("- name: a\n  type: mock\n  mock:\n" + block))
	require.NoError(t, err)
	require.Len(t, configs, 1)
	return configs[0]
}

func TestBlockIsDecoded(t *testing.T) {
	t.Parallel()
	got := settings{Text: "default", Count: 9, Pause: time.Hour}
	require.NoError(t, entryWith(t, `
    text: |
      two
      lines
    flag: true
    switch: false
    small: -7
    pause: 0
    delay: 90s
    words: [a, "7"]
    labels: {team: crawl, "8": "9"}
    nested:
      zone: b
    lists: [{zone: c}, {zone: d}]
`).Decode(&got))
	off := false
	assert.Equal(t, settings{
		Text: "two\nlines\n", Flag: true, Switch: &off, Count: 9, Small: -7, Delay: 90 * time.Second,
		Words: []string{"a", "7"}, Labels: map[string]string{"team": "crawl", "8": "9"},
		Nested: inner{"b"}, Lists: []inner{{"c"}, {"d"}},
	}, got)
}

func TestAbsentBlockKeepsDefaults(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		promise string
		config  Config
	}{
		{"empty block", entryWith(t, "\n")},
		{"empty mapping", entryWith(t, "    {}\n")},
		{"no block", Config{Name: "a", Type: "mock"}},
	} {
		got := settings{Text: "default", Delay: time.Second}
		require.NoError(t, row.config.Decode(&got), row.promise)
		assert.Equal(t, settings{Text: "default", Delay: time.Second}, got, row.promise)
	}
}

func TestFaultsOfABlockSayWhereAndWhatToDo(t *testing.T) {
	t.Parallel()
	for _, row := range []struct{ promise, block, want string }{
		{"number for text", "    text: 7\n", `line 4: entry 1 "a": mock.text: must be a string; put it in quotes`},
		{"truth for text", "    text: true\n", "mock.text: must be a string; put it in quotes"},
		{"nothing for text", "    text:\n", "mock.text: has no value; give it one, or remove the key"},
		{"text for truth", "    flag: maybe\n", "mock.flag: must be true or false"},
		{"text behind a pointer", "    switch: maybe\n", "mock.switch: must be true or false"},
		{"text for number", "    count: many\n", "mock.count: must be a whole number of at most 64 bits"},
		{"fraction for number", "    count: 1.5\n", "mock.count: must be a whole number of at most 64 bits"},
		{"too large", "    small: 2147483648\n", "mock.small: must be a whole number of at most 32 bits"},
		{"duration without unit", "    delay: 90\n", "mock.delay: must be a duration such as 90s or 10m, or 0"},
		{"duration of words", "    delay: soon\n", "mock.delay: must be a duration such as 90s or 10m, or 0"},
		{"duration below 0", "    delay: -1s\n", "mock.delay: must be a duration such as 90s or 10m, or 0"},
		{"word for list", "    words: a\n", "mock.words: must be a list"},
		{"number in list", "    words:\n    - a\n    - 7\n", `line 6: entry 1 "a": mock.words[1]: must be a string; put it in quotes`},
		{"word for labels", "    labels: a\n", "mock.labels: must be a mapping of keys to values"},
		{"number in labels", "    labels: {a: 7}\n", "mock.labels.a: must be a string; put it in quotes"},
		{"word for mapping", "    nested: a\n", "mock.nested: must be a mapping of keys to values"},
		{"unknown key inside", "    nested: {zones: a}\n", "mock.nested.zones: is not known; known here are zone"},
		{"unknown key in a list", "    lists: [{zone: a}, {zones: b}]\n", "mock.lists[1].zones: is not known; known here are zone"},
		{"field that is not written", "    Skipped: a\n", "mock.Skipped: is not known; known here are count, delay,"},
		{"kind that nobody needs", "    ratio: 1.5\n", "mock.ratio: cannot be read into a float64; this is a fault of the program"},
		{"merge key", "    <<: {text: a}\n", "mock.<<: is not known"},
		{"block is a word", "    words\n", `line 4: entry 1 "a": mock: must be a mapping of keys to values`},
	} {
		t.Run(row.promise, func(t *testing.T) {
			t.Parallel()
			var s settings
			err := entryWith(t, row.block).Decode(&s)
			require.ErrorContains(t, err, row.want)
			var faults ConfigFaults
			require.ErrorAs(t, err, &faults)
			assert.Len(t, faults, 1)
			assert.Empty(t, s.hidden)
		})
	}
}

func TestAllFaultsOfABlockAreReportedAtOnce(t *testing.T) {
	t.Parallel()
	var s settings
	err := entryWith(t, "    texd: a\n    count: many\n    delay: soon\n    flag: true\n    flag: false\n").Decode(&s)
	var faults ConfigFaults
	require.ErrorAs(t, err, &faults)
	lines := make([]int, len(faults))
	for i, f := range faults {
		lines[i] = f.Line
	}
	assert.Equal(t, []int{4, 5, 6, 8}, lines, err.Error())
}

func TestDecodeNeedsAPointer(t *testing.T) {
	t.Parallel()
	for _, into := range []any{nil, settings{}, (*settings)(nil)} {
		require.ErrorContains(t, Config{Name: "a"}.Decode(into), `provider "a"`)
	}
}
