//! The software bill of materials in `CycloneDX` 1.5: every linked crate with version, licence, checksum and dependencies.

use anyhow::{Context, Result};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use super::crates::{LinkedCrate, LinkedCrates};
use super::product::Product;

pub(super) fn make(product: &Product, crates: &LinkedCrates) -> Result<String> {
    let (own, others): (Vec<_>, Vec<_>) = crates.crates.iter().partition(|one| one.name == product.name);
    let own = own.first().context("the program itself is not among its crates")?;
    let mut root = component(own);
    root["type"] = "application".into();
    let components: Vec<Value> = others.into_iter().map(component).collect();
    let dependencies: Vec<Value> = crates.crates.iter().map(dependencies).collect();
    let body = json!([root, components, dependencies]);
    let document = json!({
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "serialNumber": serial_number(&body.to_string()),
        "version": 1,
        "metadata": { "component": root },
        "components": components,
        "dependencies": dependencies,
    });
    Ok(serde_json::to_string_pretty(&document)? + "\n")
}

fn component(one: &LinkedCrate) -> Value {
    let mut component = json!({
        "type": "library",
        "bom-ref": reference(&one.name, &one.version),
        "name": one.name,
        "version": one.version,
        "licenses": [{ "expression": one.license }],
    });
    if let Some(checksum) = &one.checksum {
        component["hashes"] = json!([{ "alg": "SHA-256", "content": checksum }]);
        component["purl"] = reference(&one.name, &one.version).into();
    }
    component
}

fn dependencies(one: &LinkedCrate) -> Value {
    let uses: Vec<String> = one.uses.iter().map(|(name, version)| reference(name, version)).collect();
    json!({ "ref": reference(&one.name, &one.version), "dependsOn": uses })
}

fn reference(name: &str, version: &str) -> String {
    format!("pkg:cargo/{name}@{version}")
}

/// Returns a UUID (version 8) that is the same for the same content.
fn serial_number(content: &str) -> String {
    let mut bytes: [u8; 16] = std::array::from_fn(|index| Sha256::digest(content)[index]);
    bytes[6] = (bytes[6] & 0x0f) | 0x80;
    bytes[8] = (bytes[8] & 0x3f) | 0x80;
    let hex = bytes.iter().fold(String::new(), |text, byte| text + &format!("{byte:02x}"));
    format!("urn:uuid:{}-{}-{}-{}-{}", &hex[..8], &hex[8..12], &hex[12..16], &hex[16..20], &hex[20..])
}
