//! Guesses the module of a resource URI that no module lists, from the URIs that the modules do list.

use crate::catalog::Module;
use crate::listing::{ListKind, Listing};
use crate::uri;

/// Returns the possible modules: those with a URI of the same scheme and authority, else of the same scheme, else those
/// that declare resources but list none.
pub(super) fn candidates<'a>(modules: &'a [Module], address: &str) -> Vec<&'a Module> {
    let Some(scheme) = uri::scheme(address) else { return Vec::new() };
    let among = |fits: &dyn Fn(&Listing) -> bool| -> Vec<&'a Module> {
        let listed = modules.iter().filter(|module| module.listing.as_ref().is_some_and(|own| fits(own)));
        listed.collect()
    };
    let same_origin = |listing: &Listing| {
        addresses(listing).any(|own| uri::is_complete(own) && uri::origin(own) == uri::origin(address))
    };
    let same_scheme = |listing: &Listing| {
        addresses(listing).any(|own| uri::scheme(own).is_some_and(|own| own.eq_ignore_ascii_case(scheme)))
    };
    let silent = |listing: &Listing| {
        ListKind::Resources.is_declared(&listing.capabilities) && addresses(listing).next().is_none()
    };
    let fits: [&dyn Fn(&Listing) -> bool; 3] = [&same_origin, &same_scheme, &silent];
    let found = fits.into_iter().map(among).find(|found| !found.is_empty());
    found.unwrap_or_default()
}

fn addresses(listing: &Listing) -> impl Iterator<Item = &str> {
    listing.resources.iter().chain(&listing.templates).map(|item| &*item.name)
}
