package provider

import (
	"context"
	"fmt"
	"os"
	"reflect"

	"github.com/goccy/go-yaml/ast"
)

// Config is one entry of the providers file: one cloud account under a name that Proxy documents use.
type Config struct {
	Name         string // name that spec.provider refers to
	Type         string // which constructor builds it: "mock" or "gcp"
	MaxInstances int    // cap on instances of this provider, replacements included; 0 means none

	index int      // place in the file, from 1; 0 for an entry that is made in code
	entry ast.Node // the entry as it was written; nil for one that is made in code
}

// Constructor builds a provider of one type from its entry.
type Constructor func(ctx context.Context, c Config) (Provider, error)

// LoadConfigs reads the providers file at path: see ReadConfigs.
func LoadConfigs(path string) ([]Config, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("read providers file: %w", err)
	}
	configs, err := ReadConfigs(data)
	if err != nil {
		return configs, fmt.Errorf("providers file %s: %w", path, err)
	}
	return configs, nil
}

// ReadConfigs reads a providers file: a YAML list of entries, each with the keys name, type,
// maxInstances and one block of settings that is named like the type. It is strict: an unknown or
// repeated key, a block of another type, a value of the wrong kind and a name that is used twice are
// faults, and the error is ConfigFaults with all of them. The entries that could be read are returned
// with it, so that a caller may look for further faults in their blocks. Whether a type exists and
// what its block may hold is for its Constructor to say: see Decode.
func ReadConfigs(data []byte) ([]Config, error) {
	nodes, err := entries(data)
	if err != nil {
		return nil, err
	}
	var faults ConfigFaults
	configs := make([]Config, 0, len(nodes))
	for i, node := range nodes {
		c := Config{index: i + 1, entry: node}
		faults = append(faults, c.read()...)
		configs = append(configs, c)
	}
	return configs, append(faults, CheckNames(configs)...).Err()
}

// read fills c in from its entry.
func (c *Config) read() ConfigFaults {
	d := decoder{config: c}
	if p, ok := c.find("name"); ok {
		c.Name, _ = textOf(p.value) // before any fault is reported under it
	}
	pairs, ok := d.mapping(c.entry, "")
	for _, p := range pairs {
		switch p.key {
		case "name":
			d.decode(p.value, p.key, &c.Name)
		case "type":
			d.decode(p.value, p.key, &c.Type)
		case "maxInstances":
			d.decode(p.value, p.key, &c.MaxInstances)
		}
	}
	if !ok {
		return d.faults
	}
	if c.MaxInstances < 0 {
		d.fault("maxInstances", "must be 0 (no cap) or more")
	}
	if c.Type == "" {
		if !d.faulty("type") {
			d.fault("type", "must be set")
		}
		return d.faults
	}
	for _, p := range pairs {
		d.checkKey(p)
	}
	return d.faults
}

// checkKey finds keys that have no place in an entry.
func (d *decoder) checkKey(p pair) {
	switch p.key {
	case "name", "type", "maxInstances", d.config.Type:
		return
	}
	if _, isBlock := unwrap(p.value).(*ast.MappingNode); isBlock {
		d.fault(p.key, fmt.Sprintf("this block does not belong to type %s; remove it, or change the type", d.config.Type))
		return
	}
	d.fault(p.key, fmt.Sprintf("is not known; an entry has name, type, maxInstances and the block %s", d.config.Type))
}

// CheckNames returns a fault for each entry without a usable name and for each name that an earlier
// entry has.
func CheckNames(configs []Config) ConfigFaults {
	var faults ConfigFaults
	first := map[string]Config{}
	for _, c := range configs {
		earlier, taken := first[c.Name]
		switch {
		case c.unreadable("name"):
		case c.Name == "":
			faults = append(faults, c.Fault("name", "must be set"))
		case !printable(c.Name):
			faults = append(faults, c.Fault("name", "must be at most 63 characters without spaces"))
		case taken:
			faults = append(faults, c.Fault("name", fmt.Sprintf("%q is the name of %s already; give each entry its own", c.Name, earlier.place())))
		default:
			first[c.Name] = c
		}
	}
	return faults
}

// printable reports whether name can stand in a log line, a label and a command.
func printable(name string) bool {
	for _, r := range name {
		if r <= ' ' || r == 0x7f || r > 0x7e && r < 0xa1 {
			return false
		}
	}
	return len(name) <= 63
}

// Decode reads the entry's block into into, a pointer to a struct whose fields have yaml (or json)
// tags. It is strict and complete: its error is ConfigFaults with every key that the struct does not
// have and every value of the wrong kind. An entry without a block leaves into as it is.
func (c Config) Decode(into any) error {
	if v := reflect.ValueOf(into); v.Kind() != reflect.Pointer || v.IsNil() {
		return fmt.Errorf("decode %s into a %T: must be a pointer", c.place(), into)
	}
	d := decoder{config: &c}
	if block, ok := c.find(c.Type); ok {
		d.decode(block.value, c.Type, into)
	}
	return d.faults.Err()
}
