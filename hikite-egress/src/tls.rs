//! TLS for outgoing connections: supported versions and trusted certificates. Trust is either the system's root store,
//! or one pinned certificate: that of a hikite on this machine, which may be self-signed.

use std::io;
use std::sync::Arc;

use hyper_rustls::ConfigBuilderExt;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, aws_lc_rs, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::version::{TLS12, TLS13};
use rustls::{CertificateError, ClientConfig, DigitallySignedStruct, Error, SignatureScheme, SupportedProtocolVersion};

static TLS13_ONLY: [&SupportedProtocolVersion; 1] = [&TLS13];
static TLS13_AND_12: [&SupportedProtocolVersion; 2] = [&TLS13, &TLS12];

/// Minimum TLS version.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum MinTls {
    V1_2,
    #[default]
    V1_3,
}

/// A pinned certificate, the first of a PEM file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PinnedCertificate(CertificateDer<'static>);

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ServerTrust {
    System(MinTls),
    Only(PinnedCertificate),
}

impl MinTls {
    /// Returns the version as written in the config.
    pub fn word(self) -> &'static str {
        match self {
            Self::V1_2 => "1.2",
            Self::V1_3 => "1.3",
        }
    }

    /// Returns the supported protocol versions.
    pub fn versions(self) -> &'static [&'static SupportedProtocolVersion] {
        match self {
            Self::V1_2 => &TLS13_AND_12,
            Self::V1_3 => &TLS13_ONLY,
        }
    }
}

impl PinnedCertificate {
    pub fn read(pem: &[u8]) -> Option<Self> {
        CertificateDer::from_pem_slice(pem).ok().map(Self)
    }
}

pub(crate) fn config(trust: &ServerTrust) -> io::Result<ClientConfig> {
    let provider = Arc::new(aws_lc_rs::default_provider());
    let min = match trust {
        ServerTrust::System(min) => *min,
        ServerTrust::Only(_) => MinTls::V1_2,
    };
    let builder = ClientConfig::builder_with_provider(Arc::clone(&provider))
        .with_protocol_versions(min.versions())
        .map_err(io::Error::other)?;
    Ok(match trust {
        ServerTrust::System(_) => builder.with_native_roots()?.with_no_client_auth(),
        ServerTrust::Only(pin) => builder
            .dangerous()
            .with_custom_certificate_verifier(Arc::new(PinVerifier { pin: pin.clone(), provider }))
            .with_no_client_auth(),
    })
}

/// Accepts only the pinned certificate, for any name and issuer. The server must still prove possession of its key.
#[derive(Debug)]
struct PinVerifier {
    pin: PinnedCertificate,
    provider: Arc<CryptoProvider>,
}

impl ServerCertVerifier for PinVerifier {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        if *end_entity == self.pin.0 {
            return Ok(ServerCertVerified::assertion());
        }
        Err(CertificateError::UnknownIssuer.into())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        verify_tls12_signature(message, certificate, signed, algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        verify_tls13_signature(message, certificate, signed, algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }
}
