//! Client of the REST API of the hikite that runs at the address of the config.

use std::net::SocketAddr;
use std::time::Duration;

use anyhow::{Context, Result, anyhow};
use bytes::Bytes;
use hikite_api::ErrorAnswer;
use hikite_config::{AuthSection, Config};
use hikite_core::json::Raw;
use hikite_core::secret::Secret;
use hikite_egress::{EgressClient, RequestBody, read};
use http::header::{AUTHORIZATION, CONTENT_TYPE};
use http::{Request, StatusCode};
use serde::de::DeserializeOwned;

use crate::{local_client, token};

const TIMEOUT: Duration = Duration::from_secs(10);
const ANSWER_BYTES: usize = 64 << 20;

pub(crate) struct RunningServer {
    client: EgressClient,
    url: String,
    token: Option<Secret>,
}

impl RunningServer {
    pub(crate) fn of(config: &Config, listen: Option<SocketAddr>) -> Result<Self> {
        let mut config = config.clone();
        config.server.listen = listen.unwrap_or(config.server.listen);
        let token = match &config.auth {
            AuthSection::Token(Some(token)) => Some(token.clone()),
            AuthSection::Token(None) => Some(token::local_token(&config.data)?),
            AuthSection::None => None,
        };
        Ok(Self { client: local_client::client(&config)?, url: config.server.local_url(), token })
    }

    /// Returns `true` if a hikite responds and accepts the token.
    pub(crate) async fn accepts(&self, path: &str) -> bool {
        self.send("GET", path, None).await.is_ok_and(|(status, _)| status.is_success())
    }

    pub(crate) async fn ask<T: DeserializeOwned>(&self, method: &str, path: &str, form: Option<&Raw>) -> Result<T> {
        let (status, body) = self.send(method, path, form).await?;
        if status.is_success() {
            return serde_json::from_slice(&body).context("the response of hikite cannot be read");
        }
        let refused: Option<ErrorAnswer> = serde_json::from_slice(&body).ok();
        let (error, hint) = refused.map(|refused| (refused.error, refused.hint)).unzip();
        let hint = hint.flatten().map(|hint| format!("\nhint: {hint}")).unwrap_or_default();
        Err(anyhow!("{}{hint}", error.unwrap_or_else(|| "hikite rejected the request".into())))
    }

    async fn send(&self, method: &str, path: &str, form: Option<&Raw>) -> Result<(StatusCode, Bytes)> {
        let mut request = Request::builder().method(method).uri(format!("{}{path}", self.url));
        if let Some(token) = &self.token {
            request = request.header(AUTHORIZATION, format!("Bearer {}", token.expose()));
        }
        let body = form.map(|form| form.bytes().clone()).unwrap_or_default();
        let request = request.header(CONTENT_TYPE, "application/json").body(RequestBody::new(body))?;
        let answer = tokio::time::timeout(TIMEOUT, self.client.send(request)).await;
        let answer = answer.context("there was no response in time")?.with_context(|| {
            format!(
                "No hikite responds at {}.\nhint: Start one with `hikite serve`, or set its address with \
                 `--listen`.",
                self.url
            )
        })?;
        let status = answer.status();
        Ok((status, read(answer.into_body(), ANSWER_BYTES).await?))
    }
}
