package themes

import (
	"image/color"
	"reflect"
	"strings"
	"testing"

	"charm.land/lipgloss/v2"
	"github.com/charmbracelet/x/ansi"
)

func everyStyle(s Styles) map[string]lipgloss.Style {
	all := map[string]lipgloss.Style{}
	v := reflect.ValueOf(s)
	for i := range v.NumField() {
		if !v.Type().Field(i).IsExported() {
			continue
		}
		if style, ok := v.Field(i).Interface().(lipgloss.Style); ok {
			all[v.Type().Field(i).Name] = style
		}
	}
	return all
}

func TestWithoutColourNoStyleSendsOne(t *testing.T) {
	for _, styles := range []Styles{New(true, None), New(true, None).Selected(), New(false, None)} {
		for name, style := range everyStyle(styles) {
			for _, c := range []color.Color{style.GetForeground(), style.GetBackground()} {
				if _, none := c.(lipgloss.NoColor); !none {
					t.Errorf("%s has the colour %v", name, c)
				}
			}
		}
	}
}

func TestTheSelectedRowLooksDifferentAtEveryDepth(t *testing.T) {
	for _, depth := range []Depth{None, Sixteen, Indexed, Full} {
		for _, dark := range []bool{true, false} {
			styles := New(dark, depth)
			for name, style := range everyStyle(styles.Selected()) {
				if strings.HasPrefix(name, "Chip") || name == "Add" || name == "Del" {
					continue // these have a background of their own
				}
				if style.Render("x") == everyStyle(styles)[name].Render("x") {
					t.Errorf("depth %d, dark %v: %s looks the same on the selected row", depth, dark, name)
				}
			}
		}
	}
}

func TestEveryRoleOfAPaletteHasAColourOfItsOwn(t *testing.T) {
	for name, p := range map[string]Palette{
		"dark": Dark(), "light": Light(), "dark of 256": indexed(true), "light of 256": indexed(false),
	} {
		seen := map[color.Color]string{}
		v := reflect.ValueOf(p)
		for i := range v.NumField() {
			role := v.Type().Field(i).Name
			c, _ := v.Field(i).Interface().(color.Color)
			if role == "Text" {
				if c != nil {
					t.Errorf("%s: text must be the terminal's own colour", name)
				}
				continue
			}
			if c == nil && strings.HasSuffix(role, "Bg") && strings.HasSuffix(name, "of 256") {
				continue
			}
			if other, twice := seen[c]; twice || c == nil {
				t.Errorf("%s: %s looks like %q", name, role, other)
			}
			seen[c] = role
		}
	}
}

func TestStatusMarksStayApartInASCII(t *testing.T) {
	plain := Marks{Plain: true}
	seen := map[string]string{}
	for _, mark := range []string{
		MarkRequest, MarkAsks, MarkFailed, MarkDone, MarkWorking, MarkIdle, MarkStarting, MarkStopped,
	} {
		text := plain.Text(mark)
		if other, twice := seen[text]; twice {
			t.Errorf("%s and %s are both %q", mark, other, text)
		}
		seen[text] = mark
	}
	if plain.Text(HeavyHorizontal) == plain.Text(Horizontal) {
		t.Error("a heavy line looks like a light one")
	}
}

func TestASCIIKeepsColumnsAndEscapes(t *testing.T) {
	for in, want := range map[string]string{
		"plain":                       "plain",
		"\x1b[1;38;2;1;2;3m⚑ x\x1b[m": "\x1b[1;38;2;1;2;3m? x\x1b[m",
		"╭──╮ │ ⏺ 日本 é":               "+--+ | * ???? ?",
		"e\u0301":                     "e",
		"└ “q” − 1–2…":                "` \"q\" - 1-2.",
		"👩‍👩‍👧 ok":                    "?? ok",
	} {
		got := Marks{Plain: true}.Text(in)
		if got != want {
			t.Errorf("Text(%q) = %q, want %q", in, got, want)
		}
		if ansi.StringWidth(got) != ansi.StringWidth(in) {
			t.Errorf("Text(%q) is %d cells wide instead of %d", in, ansi.StringWidth(got), ansi.StringWidth(in))
		}
		if again := (Marks{Plain: true}).Text(got); again != got {
			t.Errorf("Text changes %q a second time to %q", got, again)
		}
	}
}

func TestTheZeroMarksChangeNothing(t *testing.T) {
	if got := (Marks{}).Text("⚑ └"); got != "⚑ └" {
		t.Errorf("got %q", got)
	}
}

func FuzzASCIIIsASCII(f *testing.F) {
	f.Add("⚑ \x1b[1mx\x1b[m é 日")
	f.Add("\xff\xfe e\u0301\u202e")
	f.Fuzz(func(t *testing.T, s string) {
		if got := (Marks{Plain: true}).Text(strings.ToValidUTF8(s, "")); !isASCII(ansi.Strip(got)) {
			t.Errorf("Text(%q) = %q", s, got)
		}
	})
}
