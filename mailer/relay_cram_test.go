package mailer_test

import (
	"crypto/hmac"
	"crypto/md5"
	"encoding/hex"
	"strings"
)

// cramServer is the server side of CRAM-MD5 (RFC 2195).
type cramServer struct {
	check    func(user, password string) error
	password string
	asked    bool
}

const challenge = "<1896.697170952@relay.example>"

func (c *cramServer) Next(response []byte) ([]byte, bool, error) {
	if !c.asked {
		c.asked = true
		return []byte(challenge), false, nil
	}
	user, digest, _ := strings.Cut(string(response), " ")
	mac := hmac.New(md5.New, []byte(c.password))
	mac.Write([]byte(challenge))
	if digest != hex.EncodeToString(mac.Sum(nil)) {
		return nil, true, c.check(user, "")
	}
	return nil, true, c.check(user, c.password)
}
