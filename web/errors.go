package web

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net/http"
	"strconv"
	"time"

	"github.com/labstack/echo/v4"

	"entrega/internal/store"
	"entrega/internal/tenant"
	"entrega/views"
)

var (
	errPanicked = errors.New("a handler panicked")
	errCrossing = errors.New("the request came from another site")
	errBadForm  = errors.New("the form cannot be read")
	// errAdminsOnly is a page or an action that no role in a project allows.
	errAdminsOnly = fmt.Errorf("%w: it is for admins of the installation", tenant.ErrForbidden)
)

// statusClientGone is what the log shows when the browser left before the answer.
const statusClientGone = 499

// answer is what an error looks like from outside: a status and a sentence, never what went wrong inside.
type answer struct {
	status   int
	title    string
	sentence string
	// retryAfter is told to the browser when it is not zero.
	retryAfter time.Duration
	// refusal tells that the action was understood and refused: the page it came from can say so.
	refusal bool
}

// answerOf gives every error its answer. It is the one place that does.
func answerOf(err error) answer {
	var conflict *store.ConflictError
	var invalid *store.InvalidError
	var throttled *tenant.ThrottledError
	var tooLarge *http.MaxBytesError
	var plain *echo.HTTPError
	switch {
	case errors.Is(err, store.ErrNotFound):
		return answer{status: http.StatusNotFound, title: "Not found", sentence: "There is nothing here, or you may not see it."}
	case errors.As(err, &conflict):
		return answer{status: http.StatusConflict, title: "That is not possible now", sentence: conflict.Sentence, refusal: true}
	case errors.As(err, &invalid):
		return answer{status: http.StatusUnprocessableEntity, title: "Something needs mending", sentence: firstSentence(invalid), refusal: true}
	case errors.Is(err, errAdminsOnly):
		return answer{status: http.StatusForbidden, title: "Not allowed", sentence: "This is for admins of the installation."}
	case errors.Is(err, tenant.ErrForbidden):
		return answer{status: http.StatusForbidden, title: "Not allowed", sentence: "Your role does not allow this. Ask an owner of the project."}
	case errors.As(err, &throttled):
		return answer{status: http.StatusTooManyRequests, title: "Too many attempts", sentence: throttled.Error(), retryAfter: throttled.RetryAfter}
	case errors.Is(err, errCrossing):
		return answer{status: http.StatusForbidden, title: "Not allowed",
			sentence: "This form was sent from another site. Open the panel itself and try again."}
	case errors.As(err, &tooLarge):
		return answer{status: http.StatusRequestEntityTooLarge, title: "Too large",
			sentence: fmt.Sprintf("A form may have %d KiB at most.", tooLarge.Limit>>10)}
	case errors.Is(err, errBadForm):
		return answer{status: http.StatusBadRequest, title: "Not understood", sentence: "The form could not be read. Load the page again and try once more."}
	case errors.As(err, &plain):
		return answerOfStatus(plain.Code)
	case store.IsUnavailable(err), errors.Is(err, context.DeadlineExceeded):
		return answer{status: http.StatusServiceUnavailable, title: "Not available", retryAfter: 5 * time.Second,
			sentence: "The database does not answer right now. Try again in a moment."}
	default:
		return answerOfStatus(http.StatusInternalServerError)
	}
}

// answerOfStatus words what the router itself answers.
func answerOfStatus(status int) answer {
	switch {
	case status == http.StatusNotFound:
		return answer{status: status, title: "Not found", sentence: "There is no such page."}
	case status == http.StatusMethodNotAllowed:
		return answer{status: status, title: "Not understood", sentence: "This address does not take such a request."}
	case status < http.StatusInternalServerError:
		return answer{status: status, title: "Not understood", sentence: "The request could not be understood."}
	default:
		return answer{status: http.StatusInternalServerError, title: "Something went wrong",
			sentence: "The mistake is ours and was written to the log. Name the request below when you ask about it."}
	}
}

func firstSentence(e *store.InvalidError) string {
	if len(e.Fields) == 0 {
		return "The input cannot be used."
	}
	return e.Fields[0].Sentence
}

// answerError is echo's error handler. A refused action goes back to the page it came from, which says why; everything else
// is a page of its own.
func (s *Server) answerError(err error, c echo.Context) {
	if c.Response().Committed {
		s.log.WarnContext(c.Request().Context(), "an answer broke off", "request_id", requestIDOf(c), "error", err)
		return
	}
	if errors.Is(err, context.Canceled) && c.Request().Context().Err() != nil {
		c.Response().Status = statusClientGone
		return
	}
	a := answerOf(err)
	if a.status >= http.StatusInternalServerError && !errors.Is(err, errPanicked) {
		s.log.ErrorContext(c.Request().Context(), "a request failed", "request_id", requestIDOf(c), "route", c.Path(), "error", err)
	}
	if err := s.writeAnswer(c, a); err != nil {
		s.log.ErrorContext(c.Request().Context(), "an error page could not be written", "request_id", requestIDOf(c), "error", err)
	}
}

func (s *Server) writeAnswer(c echo.Context, a answer) error {
	if a.retryAfter > 0 {
		c.Response().Header().Set(echo.HeaderRetryAfter, strconv.Itoa(wholeSeconds(a.retryAfter)))
	}
	if isAPI(c.Request()) {
		writeProblem(c, problemOfAnswer(a))
		return nil
	}
	if a.refusal && c.Request().Method == http.MethodPost && visitOf(c).known() {
		if to, ok := ownPath(c.Request().PostFormValue("return")); ok && s.tell(c, views.Flash{Text: a.sentence, Failed: true}) == nil {
			return redirect(c, to)
		}
	}
	if a.status == http.StatusUnprocessableEntity && c.Request().Method != http.MethodPost {
		a.status = http.StatusBadRequest // An address that was typed, not a form.
	}
	c.Request().Header.Del(views.FragmentHeader) // An error is a whole page, whatever part of one was asked for.
	return s.page(c, a.status, views.Error(presentError(s.plainLayout(c, a.title), a, visitOf(c), requestIDOf(c))))
}

// wholeSeconds rounds up, so that nobody comes back too early.
func wholeSeconds(d time.Duration) int { return int(math.Ceil(d.Seconds())) }
