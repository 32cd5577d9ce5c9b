package fleet

import "time"

// Document is a Proxy in the manifest's form, with its status, for people and programs that read it.
// Applying it again is allowed: the status is ignored then.
type Document struct {
	APIVersion string           `json:"apiVersion"`
	Kind       string           `json:"kind"`
	Metadata   DocumentMetadata `json:"metadata"`
	Spec       Spec             `json:"spec"`
	Status     Status           `json:"status,omitzero"`
}

// DocumentMetadata is the metadata of a Document.
type DocumentMetadata struct {
	Name       string            `json:"name"`
	Labels     map[string]string `json:"labels,omitempty"`
	CreateTime time.Time         `json:"createTime,omitzero"`
	UpdateTime time.Time         `json:"updateTime,omitzero"`
	DeleteTime time.Time         `json:"deleteTime,omitzero"`
	RotateTime time.Time         `json:"rotateTime,omitzero"`
}

// DocumentOf returns p as a Document.
func DocumentOf(p Proxy) Document {
	return Document{
		APIVersion: APIVersion, Kind: Kind, Spec: p.Spec, Status: p.Status,
		Metadata: DocumentMetadata{
			Name: p.Name, Labels: p.Labels, CreateTime: p.CreateTime, UpdateTime: p.UpdateTime, DeleteTime: p.DeleteTime, RotateTime: p.RotateTime,
		},
	}
}
