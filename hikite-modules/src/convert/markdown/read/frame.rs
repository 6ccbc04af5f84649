//! Stack of open blocks, innermost last. Beyond the depth limit no block is opened, and content goes to the innermost
//! open one.

use super::super::{Callout, DEPTH_MAX, DocumentBlock, Inline, Item};

pub(super) enum ContainerKind {
    Quote,
    Callout(Callout),
    List(Option<u64>),
    Item,
    Details(Vec<Inline>),
}

#[derive(Default)]
pub(super) struct ContainerStack {
    top: Vec<DocumentBlock>,
    open: Vec<OpenContainer>,
    /// Number of blocks that were not opened for exceeding the depth limit.
    too_deep: usize,
}

struct OpenContainer {
    container: ContainerKind,
    blocks: Vec<DocumentBlock>,
    items: Vec<Item>,
    checked: Option<bool>,
}

impl ContainerStack {
    pub(super) fn open(&mut self, container: ContainerKind) {
        let is_item = matches!(container, ContainerKind::Item);
        let levels = self.open.iter().filter(|frame| !matches!(frame.container, ContainerKind::Item)).count();
        if self.too_deep > 0 || !is_item && levels >= DEPTH_MAX {
            if let ContainerKind::Details(summary) = container {
                // Its end tag is not tracked beyond the depth limit.
                self.push(DocumentBlock::Paragraph(summary));
            } else {
                self.too_deep += 1;
            }
            return;
        }
        self.open.push(OpenContainer { container, blocks: Vec::new(), items: Vec::new(), checked: None });
    }

    pub(super) fn push(&mut self, block: DocumentBlock) {
        match self.open.last_mut() {
            Some(frame) => frame.blocks.push(block),
            None => self.top.push(block),
        }
    }

    pub(super) fn extend(&mut self, blocks: Vec<DocumentBlock>) {
        for block in blocks {
            self.push(block);
        }
    }

    /// Sets the checkbox of the open item.
    pub(super) fn check(&mut self, checked: bool) {
        if let Some(frame) = self.open.last_mut().filter(|_| self.too_deep == 0) {
            frame.checked = Some(checked);
        }
    }

    /// Closes the innermost block, and all unclosed `<details>` in it.
    pub(super) fn close(&mut self) {
        if self.too_deep > 0 {
            self.too_deep -= 1;
            return;
        }
        while let Some(frame) = self.open.pop() {
            let is_details = matches!(frame.container, ContainerKind::Details(_));
            self.finished(frame);
            if !is_details {
                return;
            }
        }
    }

    pub(super) fn close_details(&mut self) {
        let is_details = |frame: &OpenContainer| matches!(frame.container, ContainerKind::Details(_));
        if self.too_deep == 0 && self.open.last().is_some_and(is_details) {
            self.close_one();
        }
    }

    fn close_one(&mut self) {
        if let Some(frame) = self.open.pop() {
            self.finished(frame);
        }
    }

    pub(super) fn finish(mut self) -> Vec<DocumentBlock> {
        while let Some(frame) = self.open.pop() {
            self.finished(frame);
        }
        self.top
    }

    fn finished(&mut self, frame: OpenContainer) {
        let OpenContainer { container, blocks, items, checked } = frame;
        let block = match container {
            ContainerKind::Quote => DocumentBlock::Quote(blocks),
            ContainerKind::Callout(kind) => DocumentBlock::Callout { kind, blocks },
            ContainerKind::List(start) => DocumentBlock::List { start, items },
            ContainerKind::Details(summary) => DocumentBlock::Details { summary, blocks },
            ContainerKind::Item => {
                if let Some(list) = self.open.last_mut() {
                    list.items.push(Item { checked, blocks });
                }
                return;
            }
        };
        self.push(block);
    }
}
