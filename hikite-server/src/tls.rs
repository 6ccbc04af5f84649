//! TLS towards clients, with the same library as egress. A certificate and its key are accepted or refused as a whole;
//! errors never contain key material.

use std::sync::Arc;
use std::time::Duration;

use hikite_egress::MinTls;
use rustls::crypto::aws_lc_rs;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{InconsistentKeys, ServerConfig};
use tokio::time::timeout;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

use crate::connection::TimedStream;

/// The server certificate and its configuration.
#[derive(Clone)]
pub struct ServerTls(TlsAcceptor);

/// An invalid certificate or key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum ServerTlsError {
    #[error("contains no certificate in PEM format")]
    Certificate,
    #[error("contains no private key in PEM format")]
    Key,
    #[error("contains a private key of an unsupported type")]
    KeyKind,
    #[error("is not the key of the certificate")]
    Mismatch,
}

impl ServerTlsError {
    /// Returns `true` if the certificate file is at fault, not the key file.
    pub fn is_certificate_error(self) -> bool {
        self == Self::Certificate
    }
}

impl ServerTls {
    /// Reads the certificate and key; `chain` starts with the server certificate.
    pub fn read(chain: &[u8], key: &[u8], min: MinTls) -> Result<Self, ServerTlsError> {
        let chain: Vec<CertificateDer<'static>> =
            CertificateDer::pem_slice_iter(chain).collect::<Result<_, _>>().map_err(|_| ServerTlsError::Certificate)?;
        if chain.is_empty() {
            return Err(ServerTlsError::Certificate);
        }
        let key = PrivateKeyDer::from_pem_slice(key).map_err(|_| ServerTlsError::Key)?;
        let mut config = ServerConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()))
            .with_protocol_versions(min.versions())
            .map_err(|_| ServerTlsError::KeyKind)?
            .with_no_client_auth()
            .with_single_cert(chain, key)
            .map_err(|error| match error {
                rustls::Error::InconsistentKeys(InconsistentKeys::KeyMismatch) => ServerTlsError::Mismatch,
                rustls::Error::InvalidCertificate(_) => ServerTlsError::Certificate,
                _ => ServerTlsError::KeyKind,
            })?;
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        Ok(Self(TlsAcceptor::from(Arc::new(config))))
    }

    /// Performs the TLS handshake, within the header timeout of a request.
    pub(crate) async fn handshake(&self, stream: TimedStream, limit: Duration) -> Option<TlsStream<TimedStream>> {
        match timeout(limit, self.0.accept(stream)).await {
            Ok(Ok(mut stream)) => {
                // A client may connect before it sends its first request.
                stream.get_mut().0.reset_header_timer();
                Some(stream)
            }
            Ok(Err(error)) => {
                tracing::debug!(%error, "TLS handshake with a client failed");
                None
            }
            Err(_) => {
                tracing::debug!("TLS handshake with a client timed out");
                None
            }
        }
    }
}

impl std::fmt::Debug for ServerTls {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Tls")
    }
}
