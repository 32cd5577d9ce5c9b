package standin

import "fmt"

// operation is a long-running operation.
type operation struct {
	name     string
	metadata Object
	response Object
	left     int // polls until it is done
}

// done makes an operation that has reached its response; parent may be empty.
func (s *Server) done(api, parent, responseType string, metadata, response Object) Object {
	s.seq++
	name := fmt.Sprintf("operations/op-%d", s.seq)
	if id := text(metadata, "build", "id"); id != "" {
		name = "operations/" + id // gcloud makes the name of a build's operation itself
	}
	if parent != "" {
		name = parent + "/" + name
	}
	metadata, response = clone(metadata), clone(response)
	if t := text(metadata, "@type"); t == "" {
		metadata["@type"] = "type.googleapis.com/google.protobuf.Struct"
	}
	response["@type"] = "type.googleapis.com/" + responseType
	s.ops[api+"/"+name] = &operation{name: name, metadata: metadata, response: response, left: s.options.LROPolls}
	answer, _ := s.poll(api + "/" + name)
	return answer.(Object)
}

func (s *Server) poll(key string) (any, error) {
	op := s.ops[key]
	if op == nil {
		return nil, fail(404, "operation %s not found", key)
	}
	o := Object{"name": op.name, "metadata": op.metadata}
	if op.left > 0 {
		op.left--
		return o, nil
	}
	o["done"], o["response"] = true, op.response
	return o, nil
}
