package web

import (
	"strings"

	"entrega/internal/tenant"
	"entrega/views"
)

func presentAccount(l views.Layout, user tenant.User, provider string, sessions []tenant.Session, own string, problems map[string]string) views.AccountProps {
	p := views.AccountProps{Layout: l, Email: user.Email, HasPassword: user.HasPassword, Provider: provider, Problems: problems}
	for _, s := range sessions {
		p.Sessions = append(p.Sessions, views.Session{ID: s.ID, Device: device(s.UserAgent), Address: s.Address,
			CreatedAt: s.CreatedAt, LastSeenAt: s.SeenAt, Current: s.ID == own})
	}
	return p
}

// device reads a browser's own name roughly, so that people know their sessions apart. The order matters: most browsers name
// others too.
func device(userAgent string) string {
	browser, system := "Browser", ""
	for _, known := range [][2]string{{"Firefox/", "Firefox"}, {"Edg/", "Edge"}, {"OPR/", "Opera"}, {"Chrome/", "Chrome"}, {"Safari/", "Safari"}, {"curl/", "curl"}} {
		if strings.Contains(userAgent, known[0]) {
			browser = known[1]
			break
		}
	}
	for _, known := range [][2]string{{"Android", "Android"}, {"iPhone", "iPhone"}, {"iPad", "iPad"}, {"Mac OS X", "macOS"}, {"Windows", "Windows"}, {"Linux", "Linux"}} {
		if strings.Contains(userAgent, known[0]) {
			system = known[1]
			break
		}
	}
	if system == "" {
		return browser
	}
	return browser + " on " + system
}
