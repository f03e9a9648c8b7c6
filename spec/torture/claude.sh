#!/bin/sh
# Stands in for the claude command in the flow of that name: a talk that waits for nobody. What is
# said too early is kept until it is asked for.
cat <<'LINES'
{"type":"control_request","request_id":"r1","request":{"subtype":"mcp_message","server_name":"host","message":{"jsonrpc":"2.0","id":0,"method":"initialize","params":{}}}}
{"type":"control_request","request_id":"r2","request":{"subtype":"mcp_message","server_name":"host","message":{"jsonrpc":"2.0","method":"notifications/initialized"}}}
{"type":"control_request","request_id":"r3","request":{"subtype":"mcp_message","server_name":"host","message":{"jsonrpc":"2.0","id":1,"method":"tools/list"}}}
{"type":"system","subtype":"init","capabilities":[]}
{"type":"stream_event","event":{"type":"message_start","message":{"id":"m1","usage":{"input_tokens":9,"output_tokens":1}}},"parent_tool_use_id":null}
{"type":"stream_event","event":{"type":"content_block_start","index":0,"content_block":{"type":"tool_use","id":"toolu_1","name":"mcp__host__weather","input":{}}},"parent_tool_use_id":null}
{"type":"stream_event","event":{"type":"content_block_delta","index":0,"delta":{"type":"input_json_delta","partial_json":"{\"city\":\"Bonn\"}"}},"parent_tool_use_id":null}
{"type":"stream_event","event":{"type":"content_block_stop","index":0},"parent_tool_use_id":null}
{"type":"stream_event","event":{"type":"message_delta","delta":{"stop_reason":"tool_use"},"usage":{"output_tokens":4}},"parent_tool_use_id":null}
{"type":"stream_event","event":{"type":"message_stop"},"parent_tool_use_id":null}
{"type":"control_request","request_id":"r4","request":{"subtype":"mcp_message","server_name":"host","message":{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"weather","arguments":{"city":"Bonn"},"_meta":{"claudecode/toolUseId":"toolu_1"}}}}}
{"type":"stream_event","event":{"type":"message_start","message":{"id":"m2","usage":{"input_tokens":9,"output_tokens":1}}},"parent_tool_use_id":null}
{"type":"stream_event","event":{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}},"parent_tool_use_id":null}
{"type":"stream_event","event":{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"it is fine"}},"parent_tool_use_id":null}
{"type":"stream_event","event":{"type":"content_block_stop","index":0},"parent_tool_use_id":null}
{"type":"stream_event","event":{"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"output_tokens":4}},"parent_tool_use_id":null}
{"type":"stream_event","event":{"type":"message_stop"},"parent_tool_use_id":null}
{"type":"result","subtype":"success","is_error":false,"result":"it is fine","permission_denials":[]}
{"type":"stream_event","event":{"type":"message_start","message":{"id":"m3","usage":{"input_tokens":9,"output_tokens":1}}},"parent_tool_use_id":null}
{"type":"stream_event","event":{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}},"parent_tool_use_id":null}
{"type":"stream_event","event":{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"still fine"}},"parent_tool_use_id":null}
{"type":"stream_event","event":{"type":"content_block_stop","index":0},"parent_tool_use_id":null}
{"type":"stream_event","event":{"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"output_tokens":4}},"parent_tool_use_id":null}
{"type":"stream_event","event":{"type":"message_stop"},"parent_tool_use_id":null}
{"type":"result","subtype":"success","is_error":false,"result":"still fine","permission_denials":[]}
LINES
exec cat >/dev/null
