package term

import (
	"fmt"
	"strings"
	"testing"
)

// inputs are what programs write, in the proportions that matter: a log that
// scrolls, an agent that draws its whole screen, colours, wide text, an editor.
func inputs() map[string][]byte {
	var logs, frames, colours, wide, edits strings.Builder
	for i := range 2000 {
		fmt.Fprintf(&logs, "%06d some plain line of a log that is about seventy-five bytes long ....\r\n", i)
		fmt.Fprintf(&wide, "%d \u4f60\u597d\u4e16\u754c e\u0301 \U0001f468\u200d\U0001f469\u200d\U0001f467 text\r\n", i)
		fmt.Fprintf(&edits, "\x1b[%d;%dH\x1b[L\x1b[3Pab\x1b[2@\x1b[5;20r\x1b[S\x1b[r", 1+i%40, 1+i%100)
		for x := range 40 {
			fmt.Fprintf(&colours, "\x1b[38;2;%d;%d;9m%c", x, i%256, 'a'+x%26)
		}
	}
	for i := range 50 {
		frames.WriteString("\x1b[?2026h\x1b[H")
		for y := range 40 {
			fmt.Fprintf(&frames, "\x1b[%d;1H\x1b[1;3%dm frame %d \x1b[0m row %d of what an agent shows all day long\x1b[K", y+1, y%8, i, y)
		}
		frames.WriteString("\x1b[?2026l")
	}
	return map[string][]byte{
		"logs": []byte(logs.String()), "frames": []byte(frames.String()), "colours": []byte(colours.String()),
		"wide": []byte(wide.String()), "edits": []byte(edits.String()),
	}
}

func BenchmarkWrite(b *testing.B) {
	for name, input := range inputs() {
		b.Run(name, func(b *testing.B) {
			term := New(120, 40, 0)
			b.SetBytes(int64(len(input)))
			b.ReportAllocs()
			for b.Loop() {
				_, _ = term.Write(input)
			}
		})
	}
}

// What a viewer costs: a frame after one changed row.
func BenchmarkSince(b *testing.B) {
	term := New(120, 40, 0)
	_, _ = term.Write(inputs()["frames"])
	seq := term.Snapshot().Seq
	keys := [2][]byte{[]byte("\x1b[20;1Ha"), []byte("\x1b[20;1Hb")}
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		_, _ = term.Write(keys[i%2])
		seq = term.Since(seq).Seq
	}
}
