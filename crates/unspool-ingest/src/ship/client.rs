//! Requests of the collector.

use std::cell::Cell;
use std::io;
use std::time::Duration;

use thiserror::Error;
use unspool_query::ship::{HELLO_PATH, Hello, PATH, Positions, Receipt, Receipts, SentTo, Unit};
use ureq::Agent;
use ureq::http::{Response, StatusCode};
use ureq::tls::{RootCerts, TlsConfig};

const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// A request is answered when it is committed, behind those of others.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(120);
const COMPRESSION_LEVEL: i32 = 3;
const TOO_LARGE_FOR_PROXY: &str = "a proxy does not let the request through; allow bodies of 16 MB there (nginx: \
     `client_max_body_size 16m`)";

#[derive(Debug, Error)]
pub enum ShipError {
    #[error("{server} cannot be reached: {error}; what agents write is sent when it can")]
    Unreachable { server: String, error: String },
    #[error("{server} does not take anything at the moment ({status}): {what}")]
    Busy { server: String, status: u16, what: String },
    #[error("{server} refuses: {what}")]
    Refused { server: String, what: String },
    /// One request, for what is in it.
    #[error("{server} does not take this: {what}")]
    Rejected { server: String, what: String },
    #[error("{server} is no server of unspool: {what}; check the address")]
    Foreign { server: String, what: String },
}

impl ShipError {
    /// True if it makes no sense to try again.
    pub fn is_final(&self) -> bool {
        match self {
            ShipError::Refused { .. } | ShipError::Rejected { .. } | ShipError::Foreign { .. } => {
                true
            }
            ShipError::Unreachable { .. } | ShipError::Busy { .. } => false,
        }
    }
}

/// A connection to a server with the token of a member.
pub struct Client {
    agent: Agent,
    server: String,
    token: String,
    machine: String,
    /// It has answered before: it is a server of ours, whatever a proxy says meanwhile.
    has_answered: Cell<bool>,
}

impl Client {
    pub fn new(server: &str, token: String, machine: String) -> Client {
        // The certificate of a server of one's own is known to the system, and to nobody else.
        let tls = TlsConfig::builder().root_certs(RootCerts::PlatformVerifier).build();
        let config = Agent::config_builder()
            .timeout_connect(Some(CONNECT_TIMEOUT))
            .timeout_global(Some(REQUEST_TIMEOUT))
            .http_status_as_error(false)
            .tls_config(tls)
            // Another server would get the token.
            .max_redirects(0)
            .build();
        let server = server.trim_end_matches('/').to_owned();
        let has_answered = Cell::new(false);
        Client { agent: Agent::new_with_config(config), server, token, machine, has_answered }
    }

    /// How far the server has these files.
    pub fn hello(&self, files: Vec<String>) -> Result<Vec<Option<SentTo>>, ShipError> {
        let count = files.len();
        let hello = Hello { machine: self.machine.clone(), files };
        let body = serde_json::to_vec(&hello).map_err(|error| self.foreign(&error))?;
        let request = self.agent.post(format!("{}{HELLO_PATH}", self.server));
        let request = request
            .header("authorization", format!("Bearer {}", self.token))
            .header("content-type", "application/json");
        let answer = self.answer(request.send(&body[..]))?;
        let positions: Positions =
            serde_json::from_str(&answer).map_err(|error| self.foreign(&error))?;
        match positions.files.len() == count {
            true => Ok(positions.files),
            false => Err(self.foreign(&"its answer is about other files")),
        }
    }

    /// Sends units and returns an answer to each.
    pub fn send<'u>(
        &self,
        units: impl Iterator<Item = &'u Unit>,
    ) -> Result<Vec<Receipt>, ShipError> {
        let mut count = 0;
        let mut packed = zstd::stream::write::Encoder::new(Vec::new(), COMPRESSION_LEVEL)
            .map_err(|error| self.foreign(&error))?;
        for unit in units {
            unit.write(&mut packed).map_err(|error| self.foreign(&error))?;
            count += 1;
        }
        let body = packed.finish().map_err(|error| self.foreign(&error))?;
        let request = self.agent.post(format!("{}{PATH}", self.server));
        let request = request
            .header("authorization", format!("Bearer {}", self.token))
            .header("unspool-machine", &self.machine)
            .header("content-type", "application/zstd");
        let answer = self.answer(request.send(&body[..]))?;
        let receipts: Receipts =
            serde_json::from_str(&answer).map_err(|error| self.foreign(&error))?;
        match receipts.receipts.len() == count {
            true => Ok(receipts.receipts),
            false => Err(self.foreign(&"it answered to another number of units")),
        }
    }

    fn foreign(&self, what: &dyn std::fmt::Display) -> ShipError {
        ShipError::Foreign { server: self.server.clone(), what: what.to_string() }
    }

    fn answer(&self, sent: Result<Response<ureq::Body>, ureq::Error>) -> Result<String, ShipError> {
        let server = self.server.clone();
        let unreachable = |error: &dyn std::fmt::Display| ShipError::Unreachable {
            server: server.clone(),
            error: error.to_string(),
        };
        let mut response = sent.map_err(|error| unreachable(&error))?;
        let status = response.status();
        let text = response.body_mut().read_to_string();
        let text = text.map_err(|error: ureq::Error| unreachable(&io::Error::other(error)))?;
        if status == StatusCode::OK {
            self.has_answered.set(true);
            return Ok(text);
        }
        let problem: Option<serde_json::Value> = serde_json::from_str(&text).ok();
        let detail = problem.as_ref().and_then(|problem| problem["detail"].as_str());
        let Some(detail) = detail else {
            let status = status.as_u16();
            // A proxy, perhaps in front of a server that restarts.
            return Err(match status {
                413 => ShipError::Rejected { server, what: TOO_LARGE_FOR_PROXY.to_owned() },
                500.. => ShipError::Busy { server, status, what: "no server answers".to_owned() },
                _ if self.has_answered.get() => {
                    ShipError::Busy { server, status, what: "something else answers".to_owned() }
                }
                _ => ShipError::Foreign { server, what: format!("it answers {status}") },
            });
        };
        let what = detail.to_owned();
        Err(match status {
            StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => ShipError::Refused { server, what },
            StatusCode::TOO_MANY_REQUESTS | StatusCode::CONFLICT => {
                ShipError::Busy { server, status: status.as_u16(), what }
            }
            status if status.is_server_error() => {
                ShipError::Busy { server, status: status.as_u16(), what }
            }
            _ => ShipError::Rejected { server, what },
        })
    }
}
