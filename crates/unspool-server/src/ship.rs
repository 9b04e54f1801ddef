//! What collectors send (`unspool ship`): the routes under `/api/ship`. A request has a token of its
//! own kind, which can only send. The units of a request go into a file, because the process that
//! records may be another one; the answer comes when they are committed.

use std::fs::File;
use std::io::{self, BufReader, Read, Write};
use std::path::PathBuf;
use std::sync::Arc;

use axum::Json;
use axum::body::{Bytes, to_bytes};
use axum::extract::{Request, State};
use axum::http::header::{AUTHORIZATION, RETRY_AFTER};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use jiff::Timestamp;
use serde::Deserialize;
use tokio::sync::Semaphore;
use tokio::task::spawn_blocking;
use unspool_query::request::{Request as WriteRequest, Sender};
use unspool_query::ship::{
    Hello, MAX_BODY_BYTES, MAX_HELLO_FILES, MAX_NAME_BYTES, MAX_UNITS, Positions, SentTo, Unit,
};
use unspool_store::private_file;
use unspool_store::rows::received_name;
use unspool_store::store::{Store, View};

use crate::App;
use crate::problem::Problem;
use crate::ship_tokens::{ShipToken, ShipTokens, is_name};

/// What a body may become when it is unpacked: the heads of its units are beside their texts.
const MAX_UNPACKED_BYTES: u64 = 2 * MAX_BODY_BYTES as u64;
/// More requests than this do not wait for the one that is recorded: their senders come again.
const MAX_WAITING: usize = 16;
/// When a collector should ask again, in seconds.
const RETRY_SECONDS: &str = "2";
/// The name of the machine that sends, in requests with units.
pub const MACHINE_HEADER: &str = "unspool-machine";

/// Where tokens and units are.
pub struct Shipping {
    pub tokens: ShipTokens,
    /// A folder for the units of requests.
    folder: PathBuf,
    waiting: Semaphore,
}

impl Shipping {
    pub fn new(tokens: ShipTokens, folder: PathBuf) -> Shipping {
        Shipping { tokens, folder, waiting: Semaphore::new(MAX_WAITING) }
    }
}

/// The answer to a change handler that took units.
#[derive(Deserialize)]
struct Taken(Box<serde_json::value::RawValue>);

/// The member whose token a request has.
fn member<'a, S: Store>(
    app: &'a App<S>,
    headers: &HeaderMap,
) -> Result<(String, &'a Shipping), Problem> {
    let Some(shipping) = app.shipping.get() else {
        let what = "this server takes no sessions of other machines";
        return Err(Problem::new(StatusCode::NOT_FOUND, what));
    };
    let value = headers.get(AUTHORIZATION).and_then(|value| value.to_str().ok());
    let token = value.and_then(|value| value.strip_prefix("Bearer "));
    let found = token.and_then(|token| shipping.tokens.find(token.trim(), Timestamp::now()));
    match found {
        Some(ShipToken { member, .. }) => Ok((member, shipping)),
        None => {
            let what = "the token is not valid, has expired or was revoked; get a new one from \
                        whoever runs this server (`unspool team token MEMBER`)";
            Err(Problem::new(StatusCode::UNAUTHORIZED, what))
        }
    }
}

fn machine(name: &str) -> Result<String, Problem> {
    match is_name(name) {
        true => Ok(name.to_owned()),
        false => Err(Problem::bad_request(
            "the name of the machine must be ASCII letters, digits, . - _",
        )),
    }
}

/// Says how much the server has of some files.
pub async fn hello<S: Store>(
    State(app): State<Arc<App<S>>>,
    headers: HeaderMap,
    body: Bytes,
) -> Result<Json<Positions>, Problem> {
    let (member, _) = member(&app, &headers)?;
    let hello: Hello = serde_json::from_slice(&body)
        .map_err(|error| Problem::bad_request(format!("the question cannot be read: {error}")))?;
    let machine = machine(&hello.machine)?;
    if hello.files.len() > MAX_HELLO_FILES
        || hello.files.iter().any(|file| file.len() > MAX_NAME_BYTES)
    {
        let what = format!("at most {MAX_HELLO_FILES} files of {MAX_NAME_BYTES} bytes each");
        return Err(Problem::bad_request(what));
    }
    let names = hello.files.iter().map(|file| received_name(&member, &machine, file)).collect();
    let known = app.view().received(names).await?;
    let files = known
        .into_iter()
        .map(|known| known.map(|known| SentTo::new(known.generation, known.print, known.idle)));
    Ok(Json(Positions { files: files.collect() }))
}

/// Takes units.
pub async fn receive<S: Store>(
    State(app): State<Arc<App<S>>>,
    request: Request,
) -> Result<Response, Problem> {
    let headers = request.headers();
    let (member, shipping) = member(&app, headers)?;
    let folder = shipping.folder.clone();
    let name = headers.get(MACHINE_HEADER).and_then(|value| value.to_str().ok());
    let machine = machine(name.unwrap_or_default())?;
    let Some(handler) = app.change_handler.get().cloned() else {
        let what = "this server only reads its archive";
        return Err(Problem::new(StatusCode::CONFLICT, what));
    };
    let Ok(_place) = shipping.waiting.try_acquire() else {
        return Ok(later("many machines send at this moment; send it again"));
    };
    let body = to_bytes(request.into_body(), MAX_BODY_BYTES).await.map_err(|_| {
        let what = format!("the request is larger than {MAX_BODY_BYTES} bytes; send less at once");
        Problem::new(StatusCode::PAYLOAD_TOO_LARGE, what)
    })?;
    let work = move || -> Result<Result<String, String>, Problem> {
        let units = unpack(&body, &folder)?;
        let sender = Sender { member, machine };
        let taken = handler(WriteRequest::Receive { sender, units: units.path.clone() });
        Ok(taken)
    };
    let taken = spawn_blocking(work)
        .await
        .map_err(|error| Problem::internal(format!("not taken: {error}")))??;
    match taken {
        Ok(receipts) => {
            let receipts: Taken = serde_json::from_str(&receipts)
                .map_err(|error| Problem::internal(format!("the answer is damaged: {error}")))?;
            Ok(Json(receipts.0).into_response())
        }
        // The reason may name paths of the server: it is in its log.
        Err(reason) => {
            tracing::warn!(%reason, "units were not taken");
            Ok(later("not taken now; send it again"))
        }
    }
}

fn later(what: &'static str) -> Response {
    let problem = Problem::new(StatusCode::SERVICE_UNAVAILABLE, what);
    ([(RETRY_AFTER, RETRY_SECONDS)], problem).into_response()
}

/// A file that is removed when it was used.
struct UnitsFile {
    path: PathBuf,
}

impl Drop for UnitsFile {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.path);
    }
}

/// Unpacks a request body into a file of its own.
fn unpack(body: &[u8], folder: &std::path::Path) -> Result<UnitsFile, Problem> {
    let name = crate::random_secret()
        .ok_or_else(|| Problem::internal("the system provides no random bytes"))?;
    let file = UnitsFile { path: folder.join(format!("{name}.units")) };
    let stored = |error: io::Error| Problem::internal(format!("cannot store the units: {error}"));
    private_file::folders().recursive(true).create(folder).map_err(stored)?;
    let mut out =
        private_file::options().write(true).create_new(true).open(&file.path).map_err(stored)?;
    let damaged = |error: io::Error| {
        Problem::bad_request(format!("the request cannot be unpacked (zstd): {error}"))
    };
    let mut unpacked =
        zstd::stream::read::Decoder::new(body).map_err(damaged)?.take(MAX_UNPACKED_BYTES + 1);
    let mut buffer = vec![0; 256 * 1024];
    let mut total = 0;
    loop {
        let read = unpacked.read(&mut buffer).map_err(damaged)?;
        total += read as u64;
        if total > MAX_UNPACKED_BYTES {
            let what = format!("the request unpacks to more than {MAX_UNPACKED_BYTES} bytes");
            return Err(Problem::new(StatusCode::PAYLOAD_TOO_LARGE, what));
        }
        if read == 0 {
            break;
        }
        out.write_all(buffer.get(..read).unwrap_or_default()).map_err(stored)?;
    }
    drop(out);
    // Whoever records may be another process: what is no unit is refused here.
    let mut units = BufReader::new(File::open(&file.path).map_err(stored)?);
    let mut count = 0;
    loop {
        match Unit::read(&mut units) {
            Ok(Some(_)) if count == MAX_UNITS => {
                let what = format!("a request has at most {MAX_UNITS} units");
                return Err(Problem::bad_request(what));
            }
            Ok(Some(_)) => count += 1,
            Ok(None) => return Ok(file),
            Err(error) => return Err(Problem::bad_request(error.to_string())),
        }
    }
}
