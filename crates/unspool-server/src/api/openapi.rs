//! The table of routes as an OpenAPI document, and as the table in the docs.

use serde_json::{Map, Value, json};

use super::parameter::Parameter;
use super::request_params::path_parameter;
use super::route::{ROUTES, ResponseKind, Route};
use super::schema::{self, named};
use super::{adaptations, edits, proposals};

/// What is served under `/api`, as an OpenAPI 3.1 document.
pub fn openapi() -> Value {
    let paths: Map<String, Value> = ROUTES
        .iter()
        .map(|route| {
            let mut methods = json!({ "get": operation(route) });
            for change in changes_of(route) {
                methods[change.method] = change_operation(route, &change);
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
                token that `unspool serve` printed. All read, except those that change a \
                session's name, tags or notes, and adaptations. Paginated lists have a Link header with \
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

/// A method that changes something.
struct Change {
    method: &'static str,
    operation: &'static str,
    summary: &'static str,
    body: Option<&'static str>,
    response: &'static str,
    /// It needs the version that it was made for.
    is_conditional: bool,
}

/// The methods of a route beside GET.
fn changes_of(route: &Route) -> Vec<Change> {
    let change = |method, operation, summary, body, response| Change {
        method,
        operation,
        summary,
        body,
        response,
        is_conditional: false,
    };
    match route.path {
        edits::PATH => {
            let (body, response) = (Some("SessionEdit"), "SessionEdits");
            vec![change("post", "EditSession", edits::SUMMARY, body, response)]
        }
        adaptations::LIST => {
            let summary = adaptations::RELOAD_SUMMARY;
            vec![change("post", "ReloadAdaptations", summary, None, "AdaptationsReloaded")]
        }
        proposals::PATH => {
            let summary = proposals::DECIDE_SUMMARY;
            vec![change("post", "DecideProposal", summary, Some("ProposalDecision"), "Proposal")]
        }
        adaptations::ONE => {
            let names = [("put", "PutAdaptation"), ("patch", "PatchAdaptation")];
            let of = |(method, operation)| Change {
                is_conditional: true,
                ..change(
                    method,
                    operation,
                    adaptations::CHANGE_SUMMARY,
                    Some("AdaptationEdit"),
                    "Adaptation",
                )
            };
            names.map(of).into()
        }
        _ => Vec::new(),
    }
}

/// An operation that changes something.
fn change_operation(route: &Route, change: &Change) -> Value {
    let mut parameters: Vec<Value> = path_parameters(route).collect();
    if change.is_conditional {
        parameters.push(json!({
            "name": "If-Match", "in": "header", "required": true,
            "description": "the version that the change was made for, in quotes",
            "schema": { "type": "string" },
        }));
    }
    let mut operation = json!({
        "operationId": change.operation,
        "summary": change.summary,
        "parameters": parameters,
        "responses": responses(ResponseKind::One(change.response)),
    });
    if let Some(body) = change.body {
        operation["requestBody"] = json!({
            "required": true,
            "content": { "application/json": { "schema": named(body) } },
        });
    }
    operation
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
        for change in changes_of(route) {
            let (method, summary) = (change.method.to_uppercase(), change.summary);
            table.push_str(&format!("| `{method} {}` | {summary} |\n", route.path));
        }
    }
    table
}
