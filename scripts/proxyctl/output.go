package main

import (
	"encoding/json"
	"fmt"
	"io"

	"github.com/goccy/go-yaml"

	"crawl.example.com/proxyfleet/pkg/fleet"
)

func documents(proxies []fleet.Proxy, one bool) any {
	docs := make([]fleet.Document, len(proxies))
	for i, p := range proxies {
		docs[i] = fleet.DocumentOf(p)
	}
	if one && len(docs) == 1 {
		return docs[0]
	}
	return docs
}

func asJSON(one bool) func(io.Writer, []fleet.Proxy) error {
	return func(out io.Writer, proxies []fleet.Proxy) error {
		enc := json.NewEncoder(out)
		enc.SetIndent("", "  ")
		return enc.Encode(documents(proxies, one))
	}
}

// asYAML prints documents that can be applied again.
func asYAML() func(io.Writer, []fleet.Proxy) error {
	printed := false
	return func(out io.Writer, proxies []fleet.Proxy) error {
		for _, p := range proxies {
			data, err := json.Marshal(fleet.DocumentOf(p))
			if err != nil {
				return err
			}
			text, err := yaml.JSONToYAML(data)
			if err != nil {
				return err
			}
			if printed {
				fmt.Fprintln(out, "---")
			}
			printed = true
			fmt.Fprint(out, string(text))
		}
		return nil
	}
}
