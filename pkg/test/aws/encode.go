package aws

import (
	"encoding/json"
	"encoding/xml"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
)

// object is a structure of an answer, list a list in one.
type (
	object = map[string]any
	list   = []any
)

// json reports whether the answer is wanted in JSON: of EKS always, of IAM and
// STS by the header that aws-iam-authenticator sends.
func (q *request) json() bool {
	return q.service == "eks" || strings.Contains(q.http.Header.Get("Accept"), "application/json")
}

// code is the code of a failure as the service calls it.
func (q *request) code(f *failure) string {
	if q.service == "eks" {
		return eksCode(f.code)
	}
	return f.code
}

func (q *request) writeResult(w http.ResponseWriter, result any) {
	id := unique("", 26)
	w.Header().Set("X-Amzn-Requestid", id)
	switch {
	case q.service == "eks":
		writeJSON(w, http.StatusOK, result)
	case q.json():
		writeJSON(w, http.StatusOK, object{q.operation + "Response": object{
			q.operation + "Result": result, "ResponseMetadata": object{"RequestId": id},
		}})
	default:
		writeXML(w, http.StatusOK, q.operation+"Response", object{
			q.operation + "Result": result, "ResponseMetadata": object{"RequestId": id},
		})
	}
}

func (q *request) writeFailure(w http.ResponseWriter, f *failure) {
	code, id := q.code(f), unique("", 26)
	w.Header().Set("X-Amzn-Requestid", id)
	switch {
	case q.service == "eks":
		w.Header().Set("X-Amzn-Errortype", code)
		writeJSON(w, f.status, object{"__type": code, "message": f.message})
	case q.json():
		writeJSON(w, f.status, object{"Error": object{"Type": "Sender", "Code": code, "Message": f.message}, "RequestId": id})
	default:
		writeXML(w, f.status, "ErrorResponse", object{
			"Error": object{"Type": "Sender", "Code": code, "Message": f.message}, "RequestId": id,
		})
	}
}

func writeJSON(w http.ResponseWriter, status int, value any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(value) // the client is gone
}

func writeXML(w http.ResponseWriter, status int, root string, value any) {
	w.Header().Set("Content-Type", "text/xml")
	w.WriteHeader(status)
	var b strings.Builder
	appendXML(&b, root, value)
	_, _ = w.Write([]byte(b.String())) // the client is gone
}

// appendXML writes an element. Nothing is written for nil.
func appendXML(b *strings.Builder, name string, value any) {
	if value == nil {
		return
	}
	b.WriteString("<" + name + ">")
	switch value := value.(type) {
	case object:
		for _, key := range slices.Sorted(maps.Keys(value)) {
			appendXML(b, key, value[key])
		}
	case list:
		for _, member := range value {
			appendXML(b, "member", member)
		}
	default:
		_ = xml.EscapeText(b, []byte(fmt.Sprint(value))) // a Builder takes everything
	}
	b.WriteString("</" + name + ">")
}
