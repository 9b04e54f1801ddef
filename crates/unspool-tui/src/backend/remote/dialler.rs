//! Opens a connection: TCP, WebSocket handshake with token or login cookie, and the reader greeting
//! with its version check.

use std::time::Duration;

use futures_util::{SinkExt, StreamExt};
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_tungstenite::tungstenite::client::IntoClientRequest;
use tokio_tungstenite::tungstenite::handshake::client::{Request, Response};
use tokio_tungstenite::tungstenite::http::header::{
    AUTHORIZATION, CONTENT_TYPE, COOKIE, HeaderName,
};
use tokio_tungstenite::tungstenite::http::{HeaderValue, StatusCode};
use tokio_tungstenite::tungstenite::protocol::WebSocketConfig;
use tokio_tungstenite::tungstenite::{Error, Message};
use tokio_tungstenite::{WebSocketStream, client_async_with_config};
use unspool_query::reader::wire::{MAX_RESPONSE_BYTES, READER_HELLO, ServerMessage, VERSION};

use super::{Address, Credentials, RemoteError};

/// The timeout of each step: connect, handshake, login, greeting.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(10);
/// The longest response with its envelope.
const MAX_MESSAGE_BYTES: usize = MAX_RESPONSE_BYTES + 4096;

/// The content type of an unspool server's error responses.
const PROBLEM_JSON: &str = "application/problem+json";

pub type Socket = WebSocketStream<TcpStream>;

/// Opens connections to one server; keeps its credentials between attempts.
pub struct Dialler {
    pub address: Address,
    pub credentials: Credentials,
    /// The cookie of a password login.
    session_cookie: Option<String>,
}

impl Dialler {
    pub fn new(address: Address, credentials: Credentials) -> Dialler {
        Dialler { address, credentials, session_cookie: None }
    }

    /// Connects and waits for the server's greeting. Logs in with the password if the token fails.
    pub async fn dial(&mut self) -> Result<Socket, RemoteError> {
        let socket = match self.handshake().await {
            Err(RemoteError::Unauthorised { .. } | RemoteError::WrongToken { .. })
                if self.credentials.password.is_some() =>
            {
                self.session_cookie = Some(self.log_in()?);
                self.handshake().await?
            }
            other => other?,
        };
        self.await_ready(socket).await
    }

    fn unreachable(&self, error: &impl ToString) -> RemoteError {
        RemoteError::Unreachable { name: self.address.name(), error: error.to_string() }
    }

    fn not_unspool(&self, what: impl Into<String>) -> RemoteError {
        RemoteError::NotUnspool { name: self.address.name(), what: what.into() }
    }

    async fn handshake(&self) -> Result<Socket, RemoteError> {
        let at = (self.address.host(), self.address.port);
        let stream = match timeout(REQUEST_TIMEOUT, TcpStream::connect(at)).await {
            Ok(Ok(stream)) => stream,
            Ok(Err(error)) => return Err(self.unreachable(&error)),
            Err(elapsed) => return Err(self.unreachable(&elapsed)),
        };
        // Queries are small and latency matters.
        let _ = stream.set_nodelay(true);
        let config = WebSocketConfig::default()
            .max_message_size(Some(MAX_MESSAGE_BYTES))
            .max_frame_size(Some(MAX_MESSAGE_BYTES));
        let upgrade = client_async_with_config(self.request()?, stream, Some(config));
        match timeout(REQUEST_TIMEOUT, upgrade).await {
            Ok(Ok((socket, _))) => Ok(socket),
            Ok(Err(Error::Http(response))) => Err(self.refused(&response)),
            Ok(Err(error)) => Err(self.not_unspool(error.to_string())),
            Err(elapsed) => Err(self.unreachable(&elapsed)),
        }
    }

    fn request(&self) -> Result<Request, RemoteError> {
        let name = self.address.name();
        let request = format!("ws://{name}/api/live").into_client_request();
        let mut request = request
            .map_err(|_| RemoteError::InvalidAddress { address: format!("http://{name}") })?;
        let mut put = |header: HeaderName, value: &str| {
            HeaderValue::from_str(value).map(|value| request.headers_mut().insert(header, value))
        };
        let wrong = |_| RemoteError::WrongToken { name: name.clone() };
        if let Some(token) = &self.credentials.token {
            put(AUTHORIZATION, &format!("Bearer {token}")).map_err(wrong)?;
        }
        if let Some(session_cookie) = &self.session_cookie {
            put(COOKIE, session_cookie).map_err(wrong)?;
        }
        Ok(request)
    }

    /// The error for an HTTP response that refused the upgrade.
    fn refused(&self, response: &Response) -> RemoteError {
        let name = self.address.name();
        let status = response.status();
        let kind = response.headers().get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok());
        if kind != Some(PROBLEM_JSON) {
            return self.not_unspool(format!("status {status}"));
        }
        match status {
            StatusCode::UNAUTHORIZED if self.credentials.token.is_some() => {
                RemoteError::WrongToken { name }
            }
            StatusCode::UNAUTHORIZED => RemoteError::Unauthorised { name },
            _ => {
                let body = response.body().as_deref().map(serde_json::from_slice);
                let body: Option<serde_json::Value> = body.and_then(Result::ok);
                let detail = body.as_ref().and_then(|body| body["detail"].as_str());
                let detail = detail.map_or_else(|| status.to_string(), str::to_owned);
                RemoteError::Refused { name, detail }
            }
        }
    }

    /// Logs in with the password and returns the session cookie. Blocks: the thread is our own.
    fn log_in(&self) -> Result<String, RemoteError> {
        let name = self.address.name();
        let config = ureq::Agent::config_builder()
            // Connect to nobody but the named host: no proxy, no redirects.
            .proxy(None)
            .max_redirects(0)
            .max_redirects_will_error(false)
            .http_status_as_error(false)
            .timeout_global(Some(REQUEST_TIMEOUT))
            .build();
        let agent = ureq::Agent::new_with_config(config);
        let ours = format!("http://{name}");
        let password = self.credentials.password.as_deref().unwrap_or_default();
        let response = agent
            .post(format!("{ours}/login"))
            .header("origin", ours)
            .send_form([("password", password), ("to", "/")])
            .map_err(|error| self.unreachable(&error))?;
        let header = |of: &str| response.headers().get(of).and_then(|value| value.to_str().ok());
        match response.status().as_u16() {
            303 => {
                let cookie = header("set-cookie").and_then(|cookie| cookie.split(';').next());
                cookie.map(str::to_owned).ok_or_else(|| self.not_unspool("it sent no cookie"))
            }
            // A server without a password requires the token on every page, `/login` included.
            401 if header("content-type") == Some(PROBLEM_JSON) => {
                Err(RemoteError::NoPassword { name })
            }
            401 => Err(RemoteError::WrongPassword { name }),
            404 => Err(RemoteError::NoPassword { name }),
            429 => {
                let seconds = header("retry-after").unwrap_or("60").to_owned();
                Err(RemoteError::TooManyAttempts { name, seconds })
            }
            other => Err(self.not_unspool(format!("status {other} for a password"))),
        }
    }

    async fn await_ready(&self, mut socket: Socket) -> Result<Socket, RemoteError> {
        let name = self.address.name();
        let lost = |error: Error| self.unreachable(&error);
        socket.send(Message::text(READER_HELLO)).await.map_err(lost)?;
        let other = |theirs: String| {
            Err(RemoteError::VersionMismatch {
                name: name.clone(),
                theirs,
                ours: VERSION.to_owned(),
            })
        };
        loop {
            let text = match timeout(REQUEST_TIMEOUT, socket.next()).await {
                Err(elapsed) => return Err(self.unreachable(&elapsed)),
                Ok(None) => return Err(self.unreachable(&"it closed the connection")),
                Ok(Some(Err(error))) => return Err(lost(error)),
                Ok(Some(Ok(Message::Text(text)))) => text,
                Ok(Some(Ok(_))) => continue,
            };
            return match serde_json::from_str(&text) {
                Ok(ServerMessage::Ready { version }) if version == VERSION => Ok(socket),
                Ok(ServerMessage::Ready { version }) => other(version),
                // A server that has the socket but not the reader protocol.
                Ok(ServerMessage::Error { .. }) => other("an older version".to_owned()),
                Ok(
                    ServerMessage::Response { .. }
                    | ServerMessage::Written { .. }
                    | ServerMessage::Lagged,
                )
                | Err(_) => other("another version".to_owned()),
            };
        }
    }
}

#[cfg(test)]
#[path = "dialler_tests.rs"]
mod tests;
