// The page at "/routes": what can be asked of this server.
#pragma once

#include <string_view>

namespace twill::net {

inline constexpr std::string_view routes_page = R"html(<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>twill</title>
<style>body{font:16px/1.5 sans-serif;max-width:46em;margin:3em auto;padding:0 1em}
code{background:#eee;padding:.1em .3em}td{padding:.15em 1em .15em 0;vertical-align:top}</style>
</head><body><h1>twill</h1><p>A language model server. OpenAI's clients use the base URL <code>v1</code>; <a href="./">the
chat page</a> talks to the model, <code>twill chat</code> does so in a terminal.</p>
<table>
<tr><td><code>POST /v1/chat/completions</code></td><td>chat; server-sent events with <code>stream</code></td></tr>
<tr><td><code>POST /v1/completions</code></td><td>text or token ids in, text out</td></tr>
<tr><td><code>POST /v1/responses</code></td><td>OpenAI Responses</td></tr>
<tr><td><code>GET /v1/responses</code></td><td>the same over WebSocket</td></tr>
<tr><td><code>GET /v1/responses/ID, DELETE /v1/responses/ID</code></td><td>a stored response; with <code>stream=true&amp;starting_after=N</code> its events beyond number N</td></tr>
<tr><td><code>POST /v1/responses/ID/cancel, GET /v1/responses/ID/input_items</code></td><td>end it; the items of its input</td></tr>
<tr><td><code>GET /v1/chat/completions/ID, DELETE /v1/chat/completions/ID, POST /v1/chat/completions/ID/cancel</code></td><td>a stored chat completion, as a stored response</td></tr>
<tr><td><code>GET /v1/completions/ID, DELETE /v1/completions/ID, POST /v1/completions/ID/cancel</code></td><td>a stored completion</td></tr>
<tr><td><code>GET /v1/stream</code></td><td><a href="page/STREAM.md">a lean WebSocket dialect</a>: token ids, flow control, cancel</td></tr>
<tr><td><code>DELETE /v1/stream/ID</code></td><td>forget a stored stream of it</td></tr>
<tr><td><code>GET <a href="v1/models">/v1/models</a>, /v1/models/NAME</code></td><td>what is served</td></tr>
<tr><td><code>POST /v1/files, GET <a href="v1/files">/v1/files</a></code></td><td>uploads for batches, and what batches wrote</td></tr>
<tr><td><code>GET /v1/files/ID, DELETE /v1/files/ID, GET /v1/files/ID/content</code></td><td>one of them</td></tr>
<tr><td><code>POST /v1/batches, GET <a href="v1/batches">/v1/batches</a></code></td><td>OpenAI's Batch API: many requests, when there is room</td></tr>
<tr><td><code>GET /v1/batches/ID, POST /v1/batches/ID/cancel</code></td><td>one of them</td></tr>
<tr><td><code>POST /tokenize, /detokenize, /v1/tokenize, /v1/detokenize</code></td><td>text to ids and back</td></tr>
<tr><td><code>POST /v1/chat/completions/render, /v1/completions/render</code></td><td>the token ids that such a request becomes</td></tr>
<tr><td><code>GET <a href="tokenizer_info">/tokenizer_info</a></code></td><td>special tokens, limits, chat template</td></tr>
<tr><td><code>GET <a href="health">/health</a>, <a href="ready">/ready</a></code></td><td>whether the process answers; whether requests are served</td></tr>
<tr><td><code>GET <a href="metrics">/metrics</a></code></td><td>figures for Prometheus</td></tr>
<tr><td><code>GET <a href="load">/load</a>, <a href="get_load">/get_load</a>, <a href="is_sleeping">/is_sleeping</a>, <a href="kv_event_sources">/kv_event_sources</a></code></td><td>how much this daemon does, for routers</td></tr>
<tr><td><code>GET <a href="server_info">/server_info</a>, /get_server_info, <a href="model_info">/model_info</a>, /get_model_info</code></td><td>what it serves, for routers</td></tr>
<tr><td><code>GET <a href="version">/version</a></code></td><td>the version, and <code>server.name</code></td></tr>
<tr><td><code>GET <a href="./">/</a>, <a href="routes">/routes</a>, /page/FILE</code></td><td>the chat page, this page, what they load</td></tr>
</table>
<p>Where keys are configured, all but the last six rows want one: <code>Authorization: Bearer KEY</code> or
<code>X-Api-Key: KEY</code>. Administrators have routes and a dashboard of their own, at the address that
<code>server.admin_listen</code> names.</p>
<h2>Guides</h2><ul>
<li><a href="page/team.md">a team with keys, and the dashboard</a></li>
<li><a href="page/larger-than-memory.md">a model larger than the memory</a></li>
<li><a href="page/nginx.md">behind nginx</a></li>
<li><a href="page/limits.md">limit a user</a></li>
<li><a href="page/measure.md">measure</a></li>
<li><a href="page/several-models.md">several models</a></li>
<li><a href="page/stored-responses.md">answers that outlive a connection and a restart</a></li>
<li><a href="page/gpu.md">a GPU</a></li>
</ul>
<p><code>twilld --print-reference</code> describes every key of the configuration.</p>
</body></html>
)html";

} // namespace twill::net
