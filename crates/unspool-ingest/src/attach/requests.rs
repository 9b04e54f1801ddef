//! Requests to an OpenCode server, beside its stream of events.

use std::io;

use ureq::Agent;
use ureq::http::StatusCode;

use super::{CONNECT_TIMEOUT, OpencodeServer};

impl OpencodeServer {
    fn address(&self, path: &str) -> String {
        let base = self.url.split_once("/event").map_or(&*self.url, |(base, _)| base);
        // Which project is meant stands behind the path of the events.
        let query = self.url.split_once('?').filter(|_| !path.contains('?'));
        let query = query.map(|(_, query)| format!("?{query}"));
        format!("{}{path}{}", base.trim_end_matches("/global"), query.unwrap_or_default())
    }

    fn agent(&self) -> Agent {
        Agent::new_with_config(self.config().timeout_global(Some(CONNECT_TIMEOUT)).build())
    }

    /// What the server has at a path. None if it has nothing there.
    pub fn get(&self, path: &str) -> Option<String> {
        let mut response = self.agent().get(self.address(path)).call().ok()?;
        if response.status() != StatusCode::OK {
            return None;
        }
        response.body_mut().read_to_string().ok()
    }

    /// Sends JSON to the server. Fails if it does not accept it.
    pub fn post(&self, path: &str, body: &str) -> io::Result<()> {
        let request = self.agent().post(self.address(path));
        let request = request.header("content-type", "application/json");
        let response = request.send(body).map_err(io::Error::other)?;
        match response.status() {
            StatusCode::OK | StatusCode::NO_CONTENT => Ok(()),
            StatusCode::NOT_FOUND => {
                Err(io::Error::new(io::ErrorKind::NotFound, "it was answered already"))
            }
            status => Err(io::Error::other(format!("OpenCode says {status}"))),
        }
    }
}
