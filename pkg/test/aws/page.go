package aws

import (
	"strconv"
)

// defaultPage is how long a page is unless the request says so.
const defaultPage = 100

// page is the page of items that size and marker ask for, and the marker of the
// next page, "" behind the last.
func page(items list, size, marker string) (list, string, error) {
	limit, from := defaultPage, 0
	var err error
	if size != "" {
		if limit, err = strconv.Atoi(size); err != nil || limit < 1 || limit > 1000 {
			return nil, "", invalid("the page size %q is not between 1 and 1000", size)
		}
	}
	if marker != "" {
		if from, err = strconv.Atoi(marker); err != nil || from < 0 || from > len(items) {
			return nil, "", invalid("Invalid Marker.")
		}
	}
	if to := from + limit; to < len(items) {
		return items[from:to], strconv.Itoa(to), nil
	}
	return items[from:], "", nil
}

// paged is one page of items as IAM answers it, under the name of their list.
func (q *request) paged(name string, items list) (any, error) {
	shown, next, err := page(items, q.form.Get("MaxItems"), q.form.Get("Marker"))
	if err != nil {
		return nil, err
	}
	answer := object{name: shown, "IsTruncated": next != ""}
	if next != "" {
		answer["Marker"] = next
	}
	return answer, nil
}

// pagedEKS is one page of items as EKS answers it, under the name of their list.
func (q *request) pagedEKS(name string, items list) (any, error) {
	query := q.http.URL.Query()
	shown, next, err := page(items, query.Get("maxResults"), query.Get("nextToken"))
	if err != nil {
		return nil, err
	}
	answer := object{name: append(list{}, shown...)}
	if next != "" {
		answer["nextToken"] = next
	}
	return answer, nil
}
