// A client for the public conformance suite on the Go SDK.
//
//	MCP_CONFORMANCE_SCENARIO=tools_call go-client http://localhost:1234/mcp
//
// With HIKITE_STDIO (a command as a JSON list) the server is that program instead of the address.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

type plan func(context.Context, *mcp.ClientSession, []*mcp.Tool) error

var plans = map[string]plan{
	"initialize":                          nothing,
	"tools_call":                          call("add_numbers", map[string]any{"a": 5, "b": 3}),
	"sse-retry":                           call("test_reconnection", nil),
	"elicitation-sep1034-client-defaults": call("test_client_elicitation_defaults", nil),
	"json-schema-2020-12-preservation":    echoSchema,
}

func main() {
	if err := run(context.Background()); err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context) error {
	scenario := os.Getenv("MCP_CONFORMANCE_SCENARIO")
	steps, known := plans[scenario]
	if !known {
		return fmt.Errorf("no plan for the scenario %q", scenario)
	}
	transport, err := transport()
	if err != nil {
		return err
	}
	options := &mcp.ClientOptions{ElicitationHandler: answer}
	client := mcp.NewClient(&mcp.Implementation{Name: "go-client", Version: "1"}, options)
	session, err := client.Connect(ctx, transport, nil)
	if err != nil {
		return err
	}
	defer session.Close()
	listed, err := session.ListTools(ctx, nil)
	if err != nil {
		return err
	}
	return steps(ctx, session, listed.Tools)
}

func transport() (mcp.Transport, error) {
	program := os.Getenv("HIKITE_STDIO")
	if program == "" {
		return &mcp.StreamableClientTransport{Endpoint: os.Args[len(os.Args)-1]}, nil
	}
	var words []string
	if err := json.Unmarshal([]byte(program), &words); err != nil {
		return nil, err
	}
	command := exec.Command(words[0], words[1:]...)
	command.Stderr = os.Stderr
	return &mcp.CommandTransport{Command: command}, nil
}

// Accepts every form. The SDK fills in the defaults; fields without one get a yes.
func answer(_ context.Context, request *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
	content := map[string]any{}
	schema, _ := request.Params.RequestedSchema.(map[string]any)
	fields, _ := schema["properties"].(map[string]any)
	for name, field := range fields {
		if _, has := field.(map[string]any)["default"]; !has {
			content[name] = true
		}
	}
	return &mcp.ElicitResult{Action: "accept", Content: content}, nil
}

func nothing(context.Context, *mcp.ClientSession, []*mcp.Tool) error { return nil }

func call(name string, arguments map[string]any) plan {
	return func(ctx context.Context, session *mcp.ClientSession, _ []*mcp.Tool) error {
		if arguments == nil {
			arguments = map[string]any{}
		}
		_, err := session.CallTool(ctx, &mcp.CallToolParams{Name: name, Arguments: arguments})
		return err
	}
}

func echoSchema(ctx context.Context, session *mcp.ClientSession, tools []*mcp.Tool) error {
	for _, tool := range tools {
		if tool.Name == "json_schema_2020_12_tool" {
			return call("json_schema_echo", map[string]any{"schema": tool.InputSchema})(ctx, session, tools)
		}
	}
	return fmt.Errorf("there is no tool with a schema")
}
