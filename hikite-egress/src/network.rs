//! Public and non-public IP addresses, and networks in CIDR notation: `10.0.0.0/8`.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// An IP address or network.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IpNetwork {
    address: IpAddr,
    prefix: u8,
}

/// IPv4 networks that are not public (IANA's special-purpose registries, multicast and reserved space), and the one
/// public address that reaches the host of a virtual machine.
const NON_PUBLIC_V4: &[([u8; 4], u8)] = &[
    ([0, 0, 0, 0], 8),
    ([10, 0, 0, 0], 8),
    ([100, 64, 0, 0], 10),
    ([127, 0, 0, 0], 8),
    ([168, 63, 129, 16], 32),
    ([169, 254, 0, 0], 16),
    ([172, 16, 0, 0], 12),
    ([192, 0, 0, 0], 24),
    ([192, 0, 2, 0], 24),
    ([192, 88, 99, 0], 24),
    ([192, 168, 0, 0], 16),
    ([198, 18, 0, 0], 15),
    ([198, 51, 100, 0], 24),
    ([203, 0, 113, 0], 24),
    ([224, 0, 0, 0], 4),
    ([240, 0, 0, 0], 4),
];

/// IPv6 global unicast space.
const GLOBAL_V6: (Ipv6Addr, u8) = (Ipv6Addr::new(0x2000, 0, 0, 0, 0, 0, 0, 0), 3);

/// Parts of it that are not public: protocol assignments with Teredo, documentation, and 6to4, which embeds IPv4
/// addresses.
const NON_PUBLIC_V6: &[([u16; 8], u8)] = &[
    ([0x2001, 0, 0, 0, 0, 0, 0, 0], 23),
    ([0x2001, 0xdb8, 0, 0, 0, 0, 0, 0], 32),
    ([0x2002, 0, 0, 0, 0, 0, 0, 0], 16),
    ([0x3fff, 0, 0, 0, 0, 0, 0, 0], 20),
];

/// Prefix of IPv4 addresses translated by NAT64 (RFC 6052).
const NAT64: (Ipv6Addr, u8) = (Ipv6Addr::new(0x64, 0xff9b, 0, 0, 0, 0, 0, 0), 96);

impl IpNetwork {
    /// Parses an address or a network; `None` if it is neither.
    pub fn parse(text: &str) -> Option<Self> {
        let (address, prefix) = match text.split_once('/') {
            Some((address, prefix)) => (address, Some(prefix)),
            None => (text, None),
        };
        let address: IpAddr = address.trim_start_matches('[').trim_end_matches(']').parse().ok()?;
        let widest = if address.is_ipv4() { 32 } else { 128 };
        let prefix = match prefix {
            Some(digits) if digits.bytes().all(|byte| byte.is_ascii_digit()) => digits.parse().ok()?,
            Some(_) => return None,
            None => widest,
        };
        (prefix <= widest).then_some(Self { address, prefix })
    }

    pub fn contains(&self, address: IpAddr) -> bool {
        match (self.address, address) {
            (IpAddr::V4(block), IpAddr::V4(address)) => contains_v4(block, self.prefix, address),
            (IpAddr::V6(block), IpAddr::V6(address)) => contains_v6(block, self.prefix, address),
            _ => false,
        }
    }
}

/// Returns the address that is finally reached: IPv6 addresses may embed IPv4 ones.
pub(crate) fn effective_address(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(v6) if contains_v6(NAT64.0, NAT64.1, v6) => {
            let [.., a, b, c, d] = v6.octets();
            Ipv4Addr::new(a, b, c, d).into()
        }
        other => other,
    }
}

pub(crate) fn is_public(address: IpAddr) -> bool {
    match effective_address(address) {
        IpAddr::V4(v4) => !NON_PUBLIC_V4.iter().any(|(block, prefix)| contains_v4((*block).into(), *prefix, v4)),
        IpAddr::V6(v6) => {
            contains_v6(GLOBAL_V6.0, GLOBAL_V6.1, v6)
                && !NON_PUBLIC_V6.iter().any(|(block, prefix)| contains_v6((*block).into(), *prefix, v6))
        }
    }
}

fn contains_v4(block: Ipv4Addr, prefix: u8, address: Ipv4Addr) -> bool {
    let differing = block.to_bits() ^ address.to_bits();
    differing.checked_shr(32 - u32::from(prefix)).unwrap_or(0) == 0
}

fn contains_v6(block: Ipv6Addr, prefix: u8, address: Ipv6Addr) -> bool {
    let differing = block.to_bits() ^ address.to_bits();
    differing.checked_shr(128 - u32::from(prefix)).unwrap_or(0) == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn inner_addresses_are_not_public() {
        for address in [
            "0.0.0.0",
            "0.1.2.3",
            "10.0.0.1",
            "10.255.255.255",
            "100.64.0.1",
            "100.127.255.255",
            "100.100.100.200",
            "127.0.0.1",
            "127.255.255.254",
            "168.63.129.16",
            "169.254.0.1",
            "169.254.169.254",
            "172.16.0.1",
            "172.31.255.255",
            "192.0.0.1",
            "192.0.0.192",
            "192.0.2.1",
            "192.88.99.1",
            "192.168.1.1",
            "198.18.0.1",
            "198.19.255.255",
            "198.51.100.7",
            "203.0.113.9",
            "224.0.0.1",
            "239.255.255.255",
            "240.0.0.1",
            "255.255.255.255",
            "::",
            "::1",
            "::127.0.0.1",
            "::8.8.8.8",
            "::ffff:127.0.0.1",
            "::ffff:10.0.0.1",
            "::ffff:169.254.169.254",
            "64:ff9b::127.0.0.1",
            "64:ff9b::a00:1",
            "64:ff9b:1::1",
            "100::1",
            "2001::1",
            "2001:0:7f00:1::",
            "2001:db8::1",
            "2002:7f00:1::",
            "2002:a00:1::1",
            "3fff::1",
            "5f00::1",
            "fc00::1",
            "fd00:ec2::254",
            "fe80::1",
            "febf::1",
            "fec0::1",
            "ff02::1",
            "ff0e::1",
        ] {
            assert!(!is_public(address.parse().expect(address)), "{address}");
        }
    }

    #[test]
    fn public_addresses_are() {
        for address in [
            "1.1.1.1",
            "8.8.8.8",
            "9.255.255.255",
            "11.0.0.0",
            "100.63.255.255",
            "100.128.0.0",
            "126.255.255.255",
            "128.0.0.0",
            "168.63.129.17",
            "172.15.255.255",
            "172.32.0.0",
            "192.0.1.0",
            "198.17.255.255",
            "198.20.0.0",
            "223.255.255.255",
            "::ffff:8.8.8.8",
            "64:ff9b::8.8.8.8",
            "2001:4860:4860::8888",
            "2001:200::1",
            "2003::1",
            "2606:4700::1111",
            "3ffe::1",
        ] {
            assert!(is_public(address.parse().expect(address)), "{address}");
        }
    }

    #[test]
    fn blocks_hold_what_they_say() {
        let holds = |block: &str, address: &str| {
            IpNetwork::parse(block).expect(block).contains(address.parse().expect(address))
        };
        assert!(holds("10.0.0.0/8", "10.9.9.9") && !holds("10.0.0.0/8", "11.0.0.0"));
        assert!(holds("10.1.2.3", "10.1.2.3") && !holds("10.1.2.3", "10.1.2.4"));
        assert!(holds("0.0.0.0/0", "255.1.1.1") && !holds("0.0.0.0/0", "::1"));
        assert!(holds("fd00::/8", "fdff::1") && !holds("fd00::/8", "fe00::1"));
        assert!(holds("::/0", "ff02::1") && holds("::1", "::1"));
        for wrong in ["10.0.0.0/33", "10.0.0/8", "::/129", "10.0.0.0/", "10.0.0.0/+8", "a/8", "", "010.0.0.1"] {
            assert_eq!(IpNetwork::parse(wrong), None, "{wrong}");
        }
    }
}
