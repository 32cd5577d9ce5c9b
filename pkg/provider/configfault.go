package provider

import (
	"fmt"
	"slices"
	"strings"
)

// ConfigFault is one thing that is wrong in a providers file.
type ConfigFault struct {
	Line    int    // line of the file, from 1; 0 where unknown
	Entry   string // which entry, such as `entry 2 "gce-main"`; empty for the file as a whole
	Key     string // key inside the entry, such as gcp.project; empty for the entry as a whole
	Message string // what must hold or be done
}

// Error reads `line 7: entry 2 "gce-main": gcp.project: must be set`.
func (f ConfigFault) Error() string {
	var parts []string
	if f.Line > 0 {
		parts = append(parts, fmt.Sprintf("line %d", f.Line))
	}
	for _, part := range []string{f.Entry, f.Key, f.Message} {
		if part != "" {
			parts = append(parts, part)
		}
	}
	return strings.Join(parts, ": ")
}

// ConfigFaults are all faults of a providers file. As an error it has one line per fault.
type ConfigFaults []ConfigFault

// Error joins the faults, one a line.
func (fs ConfigFaults) Error() string {
	lines := make([]string, len(fs))
	for i, f := range fs {
		lines[i] = f.Error()
	}
	return strings.Join(lines, "\n")
}

// Err returns the faults in the order of the file as an error, nil when there is none.
func (fs ConfigFaults) Err() error {
	if len(fs) == 0 {
		return nil
	}
	sorted := slices.Clone(fs)
	slices.SortStableFunc(sorted, func(a, b ConfigFault) int { return a.Line - b.Line })
	return sorted
}

// Fault returns a fault of the entry. key is a path from the entry down, such as "gcp.project"; the
// line is that of the key, else of the nearest thing above it that is there.
func (c Config) Fault(key, message string) ConfigFault {
	f := ConfigFault{Entry: c.place(), Key: key, Message: message}
	for path := key; ; {
		if p, ok := c.find(path); ok {
			f.Line = p.line
			return f
		}
		dot := strings.LastIndexByte(path, '.')
		if dot < 0 {
			break
		}
		path = path[:dot]
	}
	if c.entry != nil {
		f.Line = lineOf(c.entry)
	}
	return f
}

// place names the entry for people.
func (c Config) place() string {
	switch {
	case c.index == 0:
		return fmt.Sprintf("provider %q", c.Name)
	case c.Name == "":
		return fmt.Sprintf("entry %d", c.index)
	}
	return fmt.Sprintf("entry %d %q", c.index, c.Name)
}
