package script

import (
	lua "github.com/yuin/gopher-lua"
	"github.com/yuin/gopher-lua/ast"
)

// textName is a name no script can write: the local that holds ip.text.
const textName = "\x01text"

// initText makes the function that converts operands of the operator .. where the interpreter would write numbers in another
// form than C Lua.
func (ip *interp) initText() {
	ip.text = ip.L.NewFunction(func(L *lua.LState) int {
		switch v := L.Get(1).(type) {
		case lua.LNumber:
			L.Push(lua.LString(numberText(v)))
		case lua.LString, *lua.LTable, *lua.LUserData:
			L.SetTop(1)
		default:
			L.RaiseError("attempt to concatenate a %s value", v.Type().String())
		}
		return 1
	})
}

// rewriteConcat puts `local text = ...` before a chunk and makes x .. y in it text(x) .. text(y), except for literals.
func rewriteConcat(chunk []ast.Stmt) []ast.Stmt {
	r := &rewriter{}
	r.stmts(chunk)
	if !r.used {
		return chunk
	}
	args := &ast.Comma3Expr{}
	args.SetLine(1)
	head := &ast.LocalAssignStmt{Names: []string{textName}, Exprs: []ast.Expr{args}}
	head.SetLine(1)
	return append([]ast.Stmt{head}, chunk...)
}

// rewriter walks a syntax tree.
type rewriter struct{ used bool }

func (r *rewriter) stmts(list []ast.Stmt) {
	for _, s := range list {
		r.stmt(s)
	}
}

func (r *rewriter) stmt(s ast.Stmt) {
	switch s := s.(type) {
	case *ast.AssignStmt:
		r.exprs(s.Lhs...)
		r.exprs(s.Rhs...)
	case *ast.LocalAssignStmt:
		r.exprs(s.Exprs...)
	case *ast.FuncCallStmt:
		r.exprs(s.Expr)
	case *ast.DoBlockStmt:
		r.stmts(s.Stmts)
	case *ast.WhileStmt:
		r.exprs(s.Condition)
		r.stmts(s.Stmts)
	case *ast.RepeatStmt:
		r.exprs(s.Condition)
		r.stmts(s.Stmts)
	case *ast.IfStmt:
		r.exprs(s.Condition)
		r.stmts(s.Then)
		r.stmts(s.Else)
	case *ast.NumberForStmt:
		r.exprs(s.Init, s.Limit, s.Step)
		r.stmts(s.Stmts)
	case *ast.GenericForStmt:
		r.exprs(s.Exprs...)
		r.stmts(s.Stmts)
	case *ast.FuncDefStmt:
		r.stmts(s.Func.Stmts)
	case *ast.ReturnStmt:
		r.exprs(s.Exprs...)
	}
}

func (r *rewriter) exprs(list ...ast.Expr) {
	for _, e := range list {
		r.expr(e)
	}
}

func (r *rewriter) expr(e ast.Expr) {
	switch e := e.(type) {
	case *ast.AttrGetExpr:
		r.exprs(e.Object, e.Key)
	case *ast.TableExpr:
		for _, f := range e.Fields {
			r.exprs(f.Key, f.Value)
		}
	case *ast.FuncCallExpr:
		r.exprs(e.Func, e.Receiver)
		r.exprs(e.Args...)
	case *ast.LogicalOpExpr:
		r.exprs(e.Lhs, e.Rhs)
	case *ast.RelationalOpExpr:
		r.exprs(e.Lhs, e.Rhs)
	case *ast.ArithmeticOpExpr:
		r.exprs(e.Lhs, e.Rhs)
	case *ast.UnaryMinusOpExpr:
		r.expr(e.Expr)
	case *ast.UnaryNotOpExpr:
		r.expr(e.Expr)
	case *ast.UnaryLenOpExpr:
		r.expr(e.Expr)
	case *ast.FunctionExpr:
		r.stmts(e.Stmts)
	case *ast.StringConcatOpExpr:
		e.Lhs, e.Rhs = r.operand(e.Lhs), r.operand(e.Rhs)
	}
}

// operand wraps an operand of .. unless it is a string for sure.
func (r *rewriter) operand(e ast.Expr) ast.Expr {
	r.expr(e)
	switch e.(type) {
	case *ast.StringExpr, *ast.StringConcatOpExpr:
		return e
	}
	r.used = true
	fn := &ast.IdentExpr{Value: textName}
	fn.SetLine(e.Line())
	call := &ast.FuncCallExpr{Func: fn, Args: []ast.Expr{e}, AdjustRet: true}
	call.SetLine(e.Line())
	call.SetLastLine(e.LastLine())
	return call
}
