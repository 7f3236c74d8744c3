package mailer

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
)

// Resolver looks up what a domain check asks for. *net.Resolver is one.
type Resolver interface {
	LookupTXT(ctx context.Context, name string) ([]string, error)
	LookupMX(ctx context.Context, name string) ([]*net.MX, error)
}

// Check is one thing that receivers look at before they believe a mail.
type Check struct {
	// Name is SPF, DKIM, DMARC or return path; Host is the name in DNS.
	Name, Host string
	OK         bool
	// Unknown says that it cannot be looked up from here: the name in DNS is the provider's to tell.
	Unknown bool
	// Found is what is there, Advice what to put there, each empty when there is nothing to say.
	Found, Advice string
}

// CheckDomain looks at the DNS of a sender's domain. A check that passes says what receivers may find; it is not delivery.
func CheckDomain(ctx context.Context, r Resolver, s Settings) ([]Check, error) {
	_, address, err := ParseFrom(s.From)
	if err != nil {
		return nil, fmt.Errorf("the sender %w", err)
	}
	domain := domainOf(address)
	return []Check{checkSPF(ctx, r, domain, s), checkDKIM(ctx, r, domain, s), checkDMARC(ctx, r, domain), checkReturnPath(ctx, r, domain)}, nil
}

func checkSPF(ctx context.Context, r Resolver, domain string, s Settings) Check {
	c := Check{Name: "SPF", Host: domain}
	records, problem := lookup(ctx, r, domain, "v=spf1")
	switch {
	case problem != "":
		c.Advice = problem
	case len(records) == 1:
		c.OK, c.Found = true, records[0]
		if need := sender(s); need != "" && !strings.Contains(strings.ToLower(records[0]), need) {
			c.Advice = "It does not name " + need + ": check that it covers your transport in another way."
		}
	case len(records) > 1:
		c.Found, c.Advice = strings.Join(records, " | "), "Keep one record that starts with v=spf1: with two, receivers take neither (RFC 7208, section 4.5)."
	default:
		c.Advice = "Add a TXT record: v=spf1 " + cmp.Or(sender(s), "include:(what your provider names)") + " -all"
	}
	return c
}

// sender is the SPF mechanism that a transport needs; empty where only its provider can tell.
func sender(s Settings) string {
	switch {
	case s.Kind == API && s.API.Shape == ShapeSES:
		return "include:amazonses.com"
	case s.Kind == API && s.API.Shape == ShapePostmark:
		return "include:spf.mtasv.net"
	case s.Kind == SMTP:
		return "a:" + strings.ToLower(s.SMTP.Host)
	default:
		return ""
	}
}

func checkDKIM(ctx context.Context, r Resolver, domain string, s Settings) Check {
	switch {
	case s.Kind == API && s.API.Shape == ShapeResend:
		return checkResendDKIM(ctx, r, domain)
	case s.Kind == API:
		return Check{Name: "DKIM", Host: "_domainkey." + domain, Unknown: true,
			Advice: "The mail API signs by itself, under a name in DNS that it chooses. Put the records there that it shows you; it says when it has found them."}
	case !s.DKIM.given():
		return Check{Name: "DKIM", Host: "_domainkey." + domain, Unknown: true,
			Advice: "No key is set here, so mails are signed only if the relay does it. Give a key, and this page says what to put into DNS."}
	}
	c := Check{Name: "DKIM", Host: s.DKIM.Selector + "._domainkey." + s.DKIM.Domain}
	want, err := s.DKIM.record()
	if err != nil {
		c.Advice = "The DKIM key cannot be read."
		return c
	}
	records, problem := lookup(ctx, r, c.Host, "")
	_, key, _ := strings.Cut(want, "p=")
	switch joined := strings.Join(records, " "); {
	case problem != "":
		c.Advice = problem
	case strings.Contains(strings.ReplaceAll(joined, " ", ""), "p="+key):
		c.OK, c.Found = true, cut(joined, 80)
	case joined != "":
		c.Found, c.Advice = cut(joined, 80), "This is the record of another key. Put there: "+want
	default:
		c.Advice = "Add a TXT record: " + want
	}
	return c
}

// checkResendDKIM looks under the name that Resend signs with.
func checkResendDKIM(ctx context.Context, r Resolver, domain string) Check {
	c := Check{Name: "DKIM", Host: "resend._domainkey." + domain}
	records, problem := lookup(ctx, r, c.Host, "")
	switch {
	case problem != "":
		c.Advice = problem
	case len(records) > 0:
		c.OK, c.Found = true, cut(strings.Join(records, " "), 80)
	default:
		c.Advice = "Add the TXT record that Resend shows for this domain, and have Resend verify it."
	}
	return c
}

func checkDMARC(ctx context.Context, r Resolver, domain string) Check {
	c := Check{Name: "DMARC", Host: "_dmarc." + domain}
	records, problem := lookup(ctx, r, c.Host, "v=DMARC1")
	switch {
	case problem != "":
		c.Advice = problem
	case len(records) == 1:
		c.OK, c.Found = true, records[0]
	default:
		c.Advice = "Add one TXT record: v=DMARC1; p=none; rua=mailto:dmarc@" + domain + ". Tighten p once SPF and DKIM pass."
	}
	return c
}

func checkReturnPath(ctx context.Context, r Resolver, domain string) Check {
	c := Check{Name: "return path", Host: domain}
	mx, err := r.LookupMX(ctx, domain)
	switch {
	case missing(err), err == nil && len(mx) == 0:
		c.Advice = "Bounces come back to this domain, which takes no mail. Add an MX record, or bounces are lost."
	case err != nil:
		c.Advice = "The name servers gave no usable answer. Try again in a moment."
	case len(mx) == 1 && mx[0].Host == ".":
		c.Found, c.Advice = "null MX", "The domain says that it takes no mail (RFC 7505), so many receivers take none from it."
	default:
		c.OK, c.Found = true, mx[0].Host
	}
	return c
}

// lookup reads the TXT records of a name that start with a version.
func lookup(ctx context.Context, r Resolver, name, version string) (records []string, problem string) {
	all, err := r.LookupTXT(ctx, name)
	if missing(err) {
		return nil, ""
	}
	if err != nil {
		return nil, "The name servers gave no usable answer. Try again in a moment."
	}
	for _, record := range all {
		if strings.HasPrefix(strings.ToLower(record), strings.ToLower(version)) {
			records = append(records, record)
		}
	}
	return records, ""
}

func missing(err error) bool {
	var dns *net.DNSError
	return errors.As(err, &dns) && dns.IsNotFound
}
