"""The output of ibnetdiscover."""
