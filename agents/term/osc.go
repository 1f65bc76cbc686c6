package term

import (
	"encoding/base64"
	"slices"
	"strings"
)

// maxStatus bounds one status report, as its protocol does.
const maxStatus = 4096

// handleOSC takes titles, notifications, status reports and colour questions.
// Clipboard access (OSC 52) is not handled at all: an agent has no business
// with the person's clipboard.
func (e *emulator) handleOSC() {
	for n, take := range map[int]func(data string){
		0: e.takeTitle, 2: e.takeTitle, 1: func(string) {},
		4: e.answerColors, 10: e.answerColors, 11: e.answerColors, 12: e.answerColors,
		110: func(string) {}, 111: func(string) {}, 112: func(string) {},
		9: e.takeNotification, 99: e.takeNotification, 777: e.takeNotification,
		7501: e.takeStatus,
	} {
		e.vt.RegisterOscHandler(n, func(data []byte) bool {
			take(string(data))
			return true
		})
	}
}

func (e *emulator) takeTitle(data string) {
	_, text, ok := strings.Cut(data, ";")
	if !ok {
		return
	}
	text = plain(text, maxText)
	if text == e.title {
		return
	}
	e.title = text
	e.owner.tell(Title{text})
}

func (e *emulator) takeNotification(data string) {
	number, rest, _ := strings.Cut(data, ";")
	text := ""
	switch number {
	case "9":
		// ConEmu's numbered commands (9;4 is progress) are no notifications.
		if first, _, cut := strings.Cut(rest, ";"); cut && len(first) <= 2 && strings.Trim(first, "0123456789") == "" {
			return
		}
		text = rest
	case "99":
		text = kittyNotification(rest)
	case "777":
		command, body, _ := strings.Cut(rest, ";")
		if command != "notify" {
			return
		}
		title, body, _ := strings.Cut(body, ";")
		text = strings.Trim(title+": "+body, ": ")
	}
	if text = plain(text, maxText); text != "" {
		e.owner.tell(Notification{text})
	}
}

// kittyNotification gives the text of OSC 99: metadata, a semicolon, and a
// payload that may be base64. Only titles and bodies are text; "p=?" asks what
// is supported and gets no answer, which means nothing.
func kittyNotification(data string) string {
	metadata, payload, ok := strings.Cut(data, ";")
	if !ok {
		return ""
	}
	for field := range strings.SplitSeq(metadata, ":") {
		switch key, value, _ := strings.Cut(field, "="); key {
		case "p":
			if value != "title" && value != "body" {
				return ""
			}
		case "e":
			if value == "1" {
				payload = decodeBase64(payload)
			}
		}
	}
	return payload
}

// takeStatus takes OSC 7501. A program asks "7501;?" whether its terminal
// knows it, and takes the same bytes back for a yes; those who ask end it
// with BEL.
func (e *emulator) takeStatus(data string) {
	_, report, _ := strings.Cut(data, ";")
	if report == "?" {
		e.owner.reply("\x1b]7501;?\a")
		return
	}
	if len(report) > maxStatus {
		return
	}
	var s Status
	for field := range strings.SplitSeq(report, ":") {
		switch key, value, _ := strings.Cut(field, "="); key {
		case "state":
			s.State = value
		case "kind":
			s.Kind = value
		case "msg":
			s.Text = plain(decodeBase64(value), maxText)
		}
	}
	if !slices.Contains([]string{"idle", "working", "blocked", "done", "error", "clear"}, s.State) {
		return
	}
	if !slices.Contains([]string{"permission", "question", "auth"}, s.Kind) {
		s.Kind = ""
	}
	e.owner.tell(s)
}

// decodeBase64 decodes text with or without padding; what is not base64 gives
// nothing.
func decodeBase64(text string) string {
	if len(text) > maxStatus {
		return ""
	}
	raw, err := base64.RawStdEncoding.DecodeString(strings.TrimRight(text, "="))
	if err != nil {
		return ""
	}
	return string(raw)
}
