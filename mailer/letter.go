package mailer

import (
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/a-h/templ"
)

// text is the letter as plain text, a component like its page.
func (l letter) text() templ.Component {
	return templ.ComponentFunc(func(_ context.Context, w io.Writer) error {
		var b strings.Builder
		for _, p := range l.paragraphs {
			b.WriteString(p + "\n\n")
		}
		if l.quote != "" {
			for line := range strings.SplitSeq(l.quote, "\n") {
				b.WriteString("> " + strings.TrimRight(line, "\r") + "\n")
			}
			b.WriteString("\n")
		}
		if l.link != "" {
			b.WriteString(l.action + ":\n" + l.link + "\n\n")
		}
		b.WriteString("-- \n" + l.foot + "\n")
		_, err := io.WriteString(w, b.String())
		return err
	})
}

// draft writes the letter out as a mail of a kind.
func (l letter) draft(ctx context.Context, d draft) (draft, error) {
	var text, html strings.Builder
	if err := l.text().Render(ctx, &text); err != nil {
		return d, fmt.Errorf("write a mail as text: %w", err)
	}
	if err := l.page().Render(ctx, &html); err != nil {
		return d, fmt.Errorf("write a mail as HTML: %w", err)
	}
	// Names that people chose end up in a header line.
	d.subject, d.text, d.html = strings.Join(strings.Fields(l.subject), " "), text.String(), html.String()
	return d, nil
}

const whyAccount = "You get this mail because this address was given on an installation of Entrega. If that was not you, ignore it: nothing happens without the link."

func accessLetter(email, project, words, link string) letter {
	return letter{subject: email + " asks to join " + project,
		paragraphs: []string{email + " asks to join the project " + project + ". Somebody who owns the project decides, and in which role."},
		quote:      words, action: "Approve or decline", link: link,
		foot: "You get this mail because you own the project " + project + " on Entrega."}
}

func approvalLetter(project, role, link string) letter {
	return letter{subject: "You are in: " + project,
		paragraphs: []string{"Your request to join the project " + project + " was approved. You are in it as " + role + "."},
		action:     "Open the project", link: link,
		foot: "You get this mail because you asked to join this project on Entrega."}
}

func confirmationLetter() letter {
	return letter{subject: "Confirm your e-mail address",
		paragraphs: []string{"Somebody, hopefully you, made an account on Entrega with this address. Confirm that it is yours and choose a password. The link works for a day."},
		action:     "Confirm the address", link: linkMark, foot: whyAccount}
}

func newAddressLetter(before string) letter {
	return letter{subject: "Confirm your new e-mail address",
		paragraphs: []string{"The account " + before + " on Entrega wants to move to this address. Confirm that it is yours. The link works for a day; until then the account keeps its old address."},
		action:     "Confirm the address", link: linkMark, foot: whyAccount}
}

func testLetter(project, transport string) letter {
	return letter{subject: "A test from Entrega",
		paragraphs: []string{"This is a test mail of the project " + project + ". It left by " + transport + ".",
			"If you read this, mail arrives. Look at its headers to see whether SPF and DKIM passed."},
		foot: "You get this mail because somebody asked for it in the panel of Entrega."}
}
