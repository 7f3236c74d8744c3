package web

import (
	"context"
	"errors"
	"net/http"

	"github.com/labstack/echo/v4"

	"entrega/mailer"
)

// feedbackBytes bounds what a provider may send at once. SendGrid sends batches.
const feedbackBytes = 1 << 20

// feedbackPath is where providers send what became of a mail. It takes no API key: each proves itself in its own way, with the
// secret that stands in the transport's settings. ?project= names a project with a transport of its own.
const feedbackPath = "/v1/mail/feedback/:provider"

// takeFeedback keeps what a provider tells. It answers 200 also for what it knows already, so that the provider does not try again.
func (a *api) takeFeedback(ec echo.Context) error {
	ctx, cancel := context.WithTimeout(ec.Request().Context(), callTimeout)
	defer cancel()
	c := call{requestID: requestIDOf(ec)}
	taken, err := a.feedback(ctx, ec)
	if errors.Is(err, mailer.ErrNotProven) {
		err = newProblem(http.StatusUnauthorized, "not_proven", "The feedback does not prove where it comes from. Check the secret in the settings of the transport.")
	}
	if err != nil {
		writeProblem(ec, a.problemOf(ctx, c, "take-feedback", err))
		return nil
	}
	return ec.JSON(http.StatusOK, map[string]int{"facts": taken.Facts, "new": taken.New})
}

func (a *api) feedback(ctx context.Context, ec echo.Context) (mailer.Taken, error) {
	r := ec.Request()
	if err := checkAddress(r.URL); err != nil {
		return mailer.Taken{}, err
	}
	body, err := operation{bodyBytes: feedbackBytes}.readBody(ec)
	if err != nil {
		return mailer.Taken{}, err
	}
	_, password, _ := r.BasicAuth()
	return a.mailer.TakeFeedback(ctx, mailer.Intake{Project: ec.QueryParam("project"), Provider: ec.Param("provider"), Header: r.Header, Body: body, Password: password})
}
