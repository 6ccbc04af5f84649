//! Tools that are described, not programmed: requests made from templates.
