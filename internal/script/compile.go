package script

import (
	"errors"
	"fmt"
	"strings"

	lua "github.com/yuin/gopher-lua"
	"github.com/yuin/gopher-lua/parse"
)

// compile compiles code. With texts the function expects ip.text as its argument and the operands of ..
// are converted with it; see concat.go.
func compile(code, name string, texts bool) (*lua.FunctionProto, error) {
	if strings.HasPrefix(code, binaryMark[:1]) {
		return nil, fmt.Errorf("%s: bad code: precompiled code is not allowed", name)
	}
	chunk, err := parse.Parse(strings.NewReader(code), name)
	if err != nil {
		return nil, syntaxError(name, err)
	}
	if texts {
		chunk = rewriteConcat(chunk)
	}
	proto, err := lua.Compile(chunk, name)
	if err != nil {
		return nil, syntaxError(name, err)
	}
	proto.IsVarArg &^= lua.VarArgNeedsArg // a chunk has no table arg
	return proto, nil
}

// function makes a function of what compile has made.
func (ip *interp) function(p *lua.FunctionProto) *lua.LFunction {
	fn := ip.L.NewFunctionFromProto(p)
	fn.Env = ip.env
	return fn
}

// syntaxError words an error of the compiler as Lua does.
func syntaxError(name string, err error) error {
	var p *parse.Error
	var c *lua.CompileError
	switch {
	case errors.As(err, &p):
		line, token := p.Pos.Line, p.Token
		if line == parse.EOF {
			return fmt.Errorf("%s: %s near '<eof>'", name, p.Message)
		}
		return fmt.Errorf("%s:%d: %s near '%s'", name, line, p.Message, token)
	case errors.As(err, &c):
		return fmt.Errorf("%s:%d: %s", name, c.Line, c.Message)
	}
	return err
}
