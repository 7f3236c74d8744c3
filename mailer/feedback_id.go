package mailer

import (
	"regexp"
	"slices"
)

var ownMessageID = regexp.MustCompile(`<?(notification_[0-9a-z]{26})@[^\s<>@]+>?`)

// notificationIn reads our own id out of a Message-ID; empty for anybody else's.
func notificationIn(messageID string) string {
	m := ownMessageID.FindStringSubmatch(messageID)
	if m == nil {
		return ""
	}
	return m[1]
}

// permanent tells the enhanced codes that say that nobody is there.
func permanent(status string) bool { return slices.Contains(noSuchRecipient, status) }
