package status

import (
	"context"
	"strings"
	"sync"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/common/types/traits"
	"github.com/google/cel-go/ext"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
	"k8s.io/apiserver/pkg/cel/library"
	"k8s.io/utils/lru"

	workv1 "open-cluster-management.io/api/work/v1"
)

// Variables of an expression.
const (
	variableObject = "object"
	// variableResult is what the expressions of the rule came to. Only message
	// expressions have it.
	variableResult = "result"
)

// Compiled expressions are kept: so many, each of so many bytes at most.
const (
	cachedPrograms   = 256
	cachedExpression = 4096
)

// ruleError is why a rule could not be evaluated, and what its condition says then.
type ruleError struct {
	status metav1.ConditionStatus
	reason string
	text   string
}

func (e *ruleError) Error() string { return e.text }

// expressionError is the fault of the expression, or of the object that it looks at.
func expressionError(text string) *ruleError {
	return &ruleError{status: metav1.ConditionFalse, reason: workv1.ConditionRuleExpressionError, text: text}
}

// internalError is not the fault of the expression.
func internalError(err error) *ruleError {
	return &ruleError{status: metav1.ConditionUnknown, reason: workv1.ConditionRuleInternalError, text: err.Error()}
}

// expressions compiles CEL expressions. Its environments have the functions of OCM's: the
// libraries of Kubernetes, strings, optional values and hasConditions. They are made when
// the first rule is evaluated, because most agents have none and they take memory.
type expressions struct {
	conditions, messages func() (*cel.Env, error)
	programs             *lru.Cache
}

func newExpressions() *expressions {
	object, result := cel.Variable(variableObject, cel.DynType), cel.Variable(variableResult, cel.BoolType)
	return &expressions{
		conditions: sync.OnceValues(func() (*cel.Env, error) { return newEnvironment(object) }),
		messages:   sync.OnceValues(func() (*cel.Env, error) { return newEnvironment(object, result) }),
		programs:   lru.New(cachedPrograms),
	}
}

// newEnvironment has the libraries of OCM's agent, for which expressions are written: a
// valid work would fail with one library less.
func newEnvironment(variables ...cel.EnvOption) (*cel.Env, error) {
	return cel.NewEnv(append(variables,
		cel.OptionalTypes(),
		ext.Strings(),
		library.Lists(),
		library.Regex(),
		library.URLs(),
		library.Quantity(),
		library.IP(),
		library.CIDR(),
		library.Format(),
		library.SemverLib(),
		cel.Function("hasConditions", cel.Overload("status_has_conditions",
			[]*cel.Type{cel.DynType}, cel.BoolType, cel.UnaryBinding(hasConditions))),
	)...)
}

// hasConditions reports whether a status has a condition at all.
func hasConditions(status ref.Val) ref.Val {
	fields, ok := status.(traits.Mapper)
	if !ok {
		return types.False
	}
	value, ok := fields.Find(types.String("conditions"))
	if !ok {
		return types.False
	}
	list, ok := value.(traits.Lister)
	return types.Bool(ok && list.Size() != types.IntZero)
}

// programKey is one expression: the same text means another program where it can refer
// to other variables.
type programKey struct {
	message bool
	text    string
}

func (x *expressions) program(key programKey) (cel.Program, *ruleError) {
	if program, ok := x.programs.Get(key); ok {
		return program.(cel.Program), nil //nolint:errcheck // Nothing else is in it.
	}
	environment := x.conditions
	if key.message {
		environment = x.messages
	}
	env, err := environment()
	if err != nil {
		return nil, internalError(err)
	}
	ast, issues := env.Compile(key.text)
	if err := issues.Err(); err != nil {
		// The lines that follow quote the expression.
		text, _, _ := strings.Cut(err.Error(), "\n")
		return nil, expressionError(text)
	}
	program, err := env.Program(ast,
		cel.CostLimit(celconfig.PerCallLimit),
		cel.CostTracking(&library.CostEstimator{}),
		cel.InterruptCheckFrequency(celconfig.CheckFrequency),
	)
	if err != nil {
		return nil, internalError(err)
	}
	if len(key.text) <= cachedExpression {
		x.programs.Add(key, program)
	}
	return program, nil
}

// start begins the evaluation of the rules of one object, which have one budget.
func (x *expressions) start(obj *unstructured.Unstructured) *evaluation {
	return &evaluation{expressions: x, object: obj.Object, budget: celconfig.RuntimeCELCostBudget}
}

// evaluation evaluates the rules of one object.
type evaluation struct {
	expressions *expressions
	object      map[string]any
	// budget is what the evaluation may still cost, in the units of CEL. Kubernetes
	// allows admission policies the same.
	budget uint64
}

// allHold reports whether every expression is true. Those after a false one are not
// evaluated.
func (e *evaluation) allHold(ctx context.Context, texts []string) (bool, *ruleError) {
	for _, text := range texts {
		value, err := e.evaluate(ctx, programKey{text: text}, map[string]any{variableObject: e.object})
		if err != nil {
			return false, err
		}
		holds, ok := value.Value().(bool)
		if !ok {
			return false, expressionError("expected bool result, got " + value.Type().TypeName())
		}
		if !holds {
			return false, nil
		}
	}
	return true, nil
}

// message returns the string that a message expression evaluates to.
func (e *evaluation) message(ctx context.Context, text string, result bool) (string, *ruleError) {
	variables := map[string]any{variableObject: e.object, variableResult: result}
	value, err := e.evaluate(ctx, programKey{message: true, text: text}, variables)
	if err != nil {
		return "", err
	}
	message, ok := value.Value().(string)
	if !ok {
		return "", expressionError("expected message expression to have a string result, got " + value.Type().TypeName())
	}
	return message, nil
}

func (e *evaluation) evaluate(ctx context.Context, key programKey, variables map[string]any) (ref.Val, *ruleError) {
	if e.budget == 0 {
		return nil, expressionError("CEL evaluation budget exceeded")
	}
	program, failed := e.expressions.program(key)
	if failed != nil {
		return nil, failed
	}
	value, details, err := program.ContextEval(ctx, variables)
	if cost := details.ActualCost(); cost != nil {
		e.budget -= min(*cost, e.budget)
	}
	if err != nil {
		return nil, expressionError(err.Error())
	}
	return value, nil
}
