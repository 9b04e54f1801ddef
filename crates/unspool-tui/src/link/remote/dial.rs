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
use unspool_engine::reader::wire::{MAX_RESPONSE_BYTES, READER_HELLO, ServerMessage, VERSION};

use super::{Address, RemoteError, Secrets};

/// The timeout of each step: connect, handshake, login, greeting.
const PATIENCE: Duration = Duration::from_secs(10);
/// The longest response with its envelope.
const LONGEST: usize = MAX_RESPONSE_BYTES + 4096;

/// The content type of an unspool server's error responses.
const PROBLEM: &str = "application/problem+json";

pub type Socket = WebSocketStream<TcpStream>;

/// Opens connections to one server; keeps its credentials between attempts.
pub struct Dialler {
    pub address: Address,
    pub secrets: Secrets,
    /// The cookie of a password login, valid until the server restarts.
    login: Option<String>,
}

impl Dialler {
    pub fn new(address: Address, secrets: Secrets) -> Dialler {
        Dialler { address, secrets, login: None }
    }

    /// Connects and waits for the server's greeting. Logs in with the password if the token fails.
    pub async fn dial(&mut self) -> Result<Socket, RemoteError> {
        let socket = match self.shake().await {
            Err(RemoteError::Unknown { .. } | RemoteError::WrongToken { .. })
                if self.secrets.password.is_some() =>
            {
                self.login = Some(self.log_in()?);
                self.shake().await?
            }
            other => other?,
        };
        self.greet(socket).await
    }

    fn silent(&self, error: &impl ToString) -> RemoteError {
        RemoteError::Silent { name: self.address.name(), error: error.to_string() }
    }

    fn not_ours(&self, what: impl Into<String>) -> RemoteError {
        RemoteError::NotOurs { name: self.address.name(), what: what.into() }
    }

    async fn shake(&self) -> Result<Socket, RemoteError> {
        let at = (self.address.host(), self.address.port);
        let stream = match timeout(PATIENCE, TcpStream::connect(at)).await {
            Ok(Ok(stream)) => stream,
            Ok(Err(error)) => return Err(self.silent(&error)),
            Err(late) => return Err(self.silent(&late)),
        };
        // Queries are small and latency matters.
        let _ = stream.set_nodelay(true);
        let config = WebSocketConfig::default()
            .max_message_size(Some(LONGEST))
            .max_frame_size(Some(LONGEST));
        let shaking = client_async_with_config(self.request()?, stream, Some(config));
        match timeout(PATIENCE, shaking).await {
            Ok(Ok((socket, _))) => Ok(socket),
            Ok(Err(Error::Http(response))) => Err(self.refused(&response)),
            Ok(Err(error)) => Err(self.not_ours(error.to_string())),
            Err(late) => Err(self.silent(&late)),
        }
    }

    fn request(&self) -> Result<Request, RemoteError> {
        let name = self.address.name();
        let request = format!("ws://{name}/api/live").into_client_request();
        let mut request =
            request.map_err(|_| RemoteError::Address { address: format!("http://{name}") })?;
        let mut put = |header: HeaderName, value: &str| {
            HeaderValue::from_str(value).map(|value| request.headers_mut().insert(header, value))
        };
        let wrong = |_| RemoteError::WrongToken { name: name.clone() };
        if let Some(token) = &self.secrets.token {
            put(AUTHORIZATION, &format!("Bearer {token}")).map_err(wrong)?;
        }
        if let Some(login) = &self.login {
            put(COOKIE, login).map_err(wrong)?;
        }
        Ok(request)
    }

    /// The error for an HTTP response that refused the upgrade.
    fn refused(&self, response: &Response) -> RemoteError {
        let name = self.address.name();
        let status = response.status();
        let kind = response.headers().get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok());
        if kind != Some(PROBLEM) {
            return self.not_ours(format!("status {status}"));
        }
        match status {
            StatusCode::UNAUTHORIZED if self.secrets.token.is_some() => {
                RemoteError::WrongToken { name }
            }
            StatusCode::UNAUTHORIZED => RemoteError::Unknown { name },
            _ => {
                let told = response.body().as_deref().map(serde_json::from_slice);
                let told: Option<serde_json::Value> = told.and_then(Result::ok);
                let detail = told.as_ref().and_then(|told| told["detail"].as_str());
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
            .timeout_global(Some(PATIENCE))
            .build();
        let agent = ureq::Agent::new_with_config(config);
        let ours = format!("http://{name}");
        let password = self.secrets.password.as_deref().unwrap_or_default();
        let response = agent
            .post(format!("{ours}/login"))
            .header("origin", ours)
            .send_form([("password", password), ("to", "/")])
            .map_err(|error| self.silent(&error))?;
        let header = |of: &str| response.headers().get(of).and_then(|value| value.to_str().ok());
        match response.status().as_u16() {
            303 => {
                let cookie = header("set-cookie").and_then(|cookie| cookie.split(';').next());
                cookie.map(str::to_owned).ok_or_else(|| self.not_ours("it sent no cookie"))
            }
            // A server without a password requires the token on every page, `/login` included.
            401 if header("content-type") == Some(PROBLEM) => Err(RemoteError::NoPassword { name }),
            401 => Err(RemoteError::WrongPassword { name }),
            404 => Err(RemoteError::NoPassword { name }),
            429 => {
                let seconds = header("retry-after").unwrap_or("60").to_owned();
                Err(RemoteError::Wait { name, seconds })
            }
            other => Err(self.not_ours(format!("status {other} for a password"))),
        }
    }

    async fn greet(&self, mut socket: Socket) -> Result<Socket, RemoteError> {
        let name = self.address.name();
        let lost = |error: Error| self.silent(&error);
        socket.send(Message::text(READER_HELLO)).await.map_err(lost)?;
        let other = |theirs: String| {
            Err(RemoteError::OtherVersion { name: name.clone(), theirs, ours: VERSION.to_owned() })
        };
        loop {
            let text = match timeout(PATIENCE, socket.next()).await {
                Err(late) => return Err(self.silent(&late)),
                Ok(None) => return Err(self.silent(&"it closed the connection")),
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
#[path = "dial_tests.rs"]
mod tests;
