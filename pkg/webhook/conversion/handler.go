package conversion

import (
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utiljson "k8s.io/apimachinery/pkg/util/json"
)

// Path is where the API server finds the handler.
const Path = "/convert"

// MaxRequestBytes is the largest review that is read. The API server takes
// objects of up to 3 MiB; it sends one at a time from its storage, and several
// only for what it has in memory.
const MaxRequestBytes = 32 << 20

// Handler answers ConversionReviews over HTTP. What it cannot make out as one
// it refuses with a status and a sentence.
type Handler struct {
	log     logr.Logger
	reviews *prometheus.CounterVec
	objects prometheus.Counter
}

// NewHandler returns a handler that counts what it does in metrics and writes
// what it could not convert to log.
func NewHandler(log logr.Logger, metrics prometheus.Registerer) (*Handler, error) {
	h := &Handler{
		log: log,
		reviews: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "ocm_webhook_conversion_reviews_total", Help: "ConversionReviews that were answered, by result.",
		}, []string{"result"}),
		objects: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "ocm_webhook_converted_objects_total", Help: "Add-ons that were converted.",
		}),
	}
	for _, result := range []string{metav1.StatusSuccess, metav1.StatusFailure} {
		h.reviews.WithLabelValues(result)
	}
	var errReviews, errObjects error
	h.reviews, errReviews = register(metrics, h.reviews)
	h.objects, errObjects = register(metrics, h.objects)
	return h, errors.Join(errReviews, errObjects)
}

// register returns the metric, or the one that another handler of this process
// has registered already.
func register[M prometheus.Collector](metrics prometheus.Registerer, metric M) (M, error) {
	err := metrics.Register(metric)
	if already := new(prometheus.AlreadyRegisteredError); errors.As(err, already) {
		if earlier, ok := already.ExistingCollector.(M); ok {
			return earlier, nil
		}
	}
	return metric, err
}

// ServeHTTP answers one review.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodPost {
		w.Header().Set("Allow", http.MethodPost)
		http.Error(w, "send a ConversionReview by POST", http.StatusMethodNotAllowed)
		return
	}
	if media, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || media != "application/json" {
		http.Error(w, "the Content-Type must be application/json", http.StatusUnsupportedMediaType)
		return
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, MaxRequestBytes))
	if tooLarge := new(http.MaxBytesError); errors.As(err, &tooLarge) {
		http.Error(w, fmt.Sprintf("the ConversionReview has more than %d bytes", tooLarge.Limit), http.StatusRequestEntityTooLarge)
		return
	}
	if err != nil {
		http.Error(w, "the ConversionReview cannot be read to its end", http.StatusBadRequest)
		return
	}
	h.answer(w, body)
}

func (h *Handler) answer(w http.ResponseWriter, body []byte) {
	review, err := Answer(body)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	data, err := utiljson.Marshal(review)
	if err != nil {
		http.Error(w, "the answer cannot be written as JSON", http.StatusInternalServerError)
		return
	}
	result := review.Response.Result
	h.reviews.WithLabelValues(result.Status).Inc()
	h.objects.Add(float64(len(review.Response.ConvertedObjects)))
	if result.Status != metav1.StatusSuccess {
		h.log.Info("Not converted", "why", result.Message)
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(data) // The client may be gone.
}
