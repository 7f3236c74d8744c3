package mailer
