//! The table of routes as an OpenAPI document, and as the table in the docs.

use serde_json::{Map, Value, json};

use super::edits;
use super::parameter::Parameter;
use super::request_params::path_parameter;
use super::route::{ROUTES, ResponseKind, Route};
use super::schema::{self, named};

/// What is served under `/api`, as an OpenAPI 3.1 document.
pub fn openapi() -> Value {
    let paths: Map<String, Value> = ROUTES
        .iter()
        .map(|route| {
            let mut methods = json!({ "get": operation(route) });
            if route.path == edits::PATH {
                methods["post"] = edit_operation(route);
            }
            (route.path.to_owned(), methods)
        })
        .collect();
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "Unspool",
            "version": env!("CARGO_PKG_VERSION"),
            "description": "What AI agents did, in the order in which it happened. Requests need the \
                token that `unspool serve` printed. All read, except the one that changes a \
                session's name, tags or notes. Paginated lists have a Link header with \
                rel=\"next\". Responses have an ETag; If-None-Match is answered with 304.",
            "license": { "name": "MIT OR Apache-2.0", "identifier": "MIT OR Apache-2.0" },
        },
        "paths": paths,
        "components": {
            "schemas": schema::all(),
            "securitySchemes": { "token": { "type": "http", "scheme": "bearer" } },
        },
        "security": [{ "token": [] }],
    })
}

/// The operation that changes a session.
fn edit_operation(route: &Route) -> Value {
    json!({
        "operationId": "EditSession",
        "summary": edits::SUMMARY,
        "parameters": path_parameters(route).collect::<Vec<_>>(),
        "requestBody": {
            "required": true,
            "content": { "application/json": { "schema": named("SessionEdit") } },
        },
        "responses": responses(ResponseKind::One("SessionEdits")),
    })
}

/// The parameters in the path of a route.
fn path_parameters(route: &Route) -> impl Iterator<Item = Value> {
    route.names().map(|name| {
        let (kind, what) = path_parameter(name);
        json!({
            "name": name, "in": "path", "required": true,
            "description": what, "schema": Parameter::schema(kind),
        })
    })
}

fn operation(route: &Route) -> Value {
    let in_query = route.parameters.iter().map(|parameter| {
        json!({
            "name": parameter.name, "in": "query", "required": parameter.required,
            "description": parameter.what, "schema": Parameter::schema(parameter.kind),
        })
    });
    let parameters: Vec<Value> = path_parameters(route).chain(in_query).collect();
    json!({
        "operationId": format!("{:?}", route.endpoint),
        "summary": route.summary,
        "parameters": parameters,
        "responses": responses(route.response),
    })
}

fn responses(response: ResponseKind) -> Value {
    let problem = json!({
        "description": "The request failed; `detail` says why and what to do next",
        "content": { "application/problem+json": { "schema": named("Problem") } },
    });
    let unchanged = json!({ "description": "Not modified" });
    let tagged = json!({ "ETag": { "schema": { "type": "string" } } });
    let document = |schema: Value, headers: Value| {
        json!({
            "description": "OK",
            "headers": headers,
            "content": { "application/json": { "schema": schema } },
        })
    };
    match response {
        ResponseKind::One(schema) => json!({
            "200": document(named(schema), tagged), "304": unchanged, "default": problem,
        }),
        ResponseKind::Many(schema) => {
            let mut headers = tagged;
            headers["Link"] = json!({
                "description": "The URL of the next page, with rel=\"next\"",
                "schema": { "type": "string" },
            });
            let list = json!({ "type": "array", "items": named(schema) });
            json!({ "200": document(list, headers), "304": unchanged, "default": problem })
        }
        ResponseKind::File => {
            let forms = unspool_export::project::ALL.iter();
            let forms = forms.map(|form| (form.media_type.to_owned(), json!({})));
            let content: Map<String, Value> = forms.collect();
            json!({ "200": { "description": "A file", "content": content }, "default": problem })
        }
        ResponseKind::Csv => json!({
            "200": { "description": "A table", "content": { "text/csv": {} } }, "default": problem,
        }),
        ResponseKind::Events => json!({
            "200": { "description": "A UI message stream", "content": { "text/event-stream": {} } },
            "204": { "description": "No turn is running" },
            "default": problem,
        }),
        ResponseKind::Socket => json!({
            "101": { "description": "A WebSocket" }, "default": problem,
        }),
    }
}

/// The routes as a Markdown table, for docs/api.md.
pub fn table() -> String {
    let mut table = "| request | answer |\n| --- | --- |\n".to_owned();
    for route in ROUTES {
        let names: Vec<&str> = route.parameters.iter().map(|parameter| parameter.name).collect();
        let mark = if names.is_empty() { "" } else { "?" };
        let request = format!("`GET {}{mark}{}`", route.path, names.join("&"));
        table.push_str(&format!("| {request} | {} |\n", route.summary));
        if route.path == edits::PATH {
            table.push_str(&format!("| `POST {}` | {} |\n", route.path, edits::SUMMARY));
        }
    }
    table
}
